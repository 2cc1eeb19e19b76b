"""The context of an item: its scale and device, the user's sources, and the folders it writes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import pandas as pd

from fathometer.errors import InputError
from fathometer.report import save_figure
from papers.files import complete_file
from papers.scales import Scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")

Source: TypeAlias = Literal["cifar10", "imagenet", "plan", "resnets"]
"""What a user may name: CIFAR-10, ImageNet's validation images, a plan of networks instead of the paper's,
a folder of published ResNets."""


@dataclass(frozen=True)
class RunContext:
    """The argument of `Item.run`.

    Attributes:
        scale: `smoke`, `small` or `paper`.
        device: torch device.
        folder: folder of this item, for tables and figures.
        shared: folder of all items at this scale: trained networks and soundings, made once.
        sources: the user's paths, by name.
        notes: what a reader should know besides the answers; items add to it.
    """

    scale: Scale
    device: str
    folder: Path
    shared: Path
    sources: dict[Source, Path] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def pick(self, *, smoke: T, small: T, paper: T) -> T:
        """Return the value for this scale."""
        return {"smoke": smoke, "small": small, "paper": paper}[self.scale]

    def note(self, words: str) -> None:
        """Add a note, once."""
        if words not in self.notes:
            self.notes.append(words)

    def source(self, name: Source) -> Path:
        """Return a path that the user named."""
        if name not in self.sources:
            raise InputError(f"--{name}: expected a path")
        return self.sources[name]

    def table(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """Write a table as `NAME.csv`, without its index, and return it."""
        with complete_file(self.folder / f"{name}.csv") as part:
            table.to_csv(part, index=False)
        return table

    def figure(self, figure: Figure) -> None:
        """Write the figure of the item, `figure.png`."""
        save_figure(figure, self.folder / "figure.png")
