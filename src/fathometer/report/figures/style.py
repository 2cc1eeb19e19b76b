"""What every figure shares: matplotlib on demand, one look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fathometer.errors import InputError, MissingExtraError
from fathometer.files import complete_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE_SUFFIXES = (".png", ".svg", ".pdf")

INK = "#20303c"
SEA = "#1f77a4"
BUOY = "#d1495b"
PALETTE = (SEA, BUOY, "#e0a030", "#3b8f6b", "#7a5195", "#6c757d")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that belongs to no window."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def require_matplotlib() -> None:
    """Fail early, and say which extra is missing."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "a picture") from error


def save_figure(figure: Figure, path: Path) -> None:
    """Write a PNG, SVG or PDF; the file appears once it is complete."""
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        raise InputError(f"{path.name}: expected a name that ends in {', '.join(PICTURE_SUFFIXES)}")
    with complete_file(path) as part:
        figure.savefig(part, dpi=150)
