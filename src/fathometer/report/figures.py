"""What every figure shares: matplotlib on demand, one look, files written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fathometer.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE_SUFFIXES = (".png", ".svg", ".pdf")

INK = "#20303c"
SEA = "#1f77a4"
BUOY = "#d1495b"


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


@contextmanager
def complete_file(path: Path, *, keep: bool = True) -> Iterator[Path]:
    """A path beside `path` to write to, put in its place at the end; nothing is left of a failure.

    With `keep=False` nothing is left at all: a trial.
    """
    part = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        yield part
        if keep:
            part.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
