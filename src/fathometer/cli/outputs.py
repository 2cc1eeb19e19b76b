"""Where a command writes: checked before the work, complete when it appears."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fathometer.errors import InputError
from fathometer.report import require_matplotlib, save_figure
from fathometer.report.figures.style import PICTURE_SUFFIXES
from fathometer.results.files import complete_file, remove_leftovers, try_writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def planned_outputs(out: Path | None, force: bool) -> tuple[Path | None, Path | None]:
    """The picture and the table that `--out` asks for: `a.png` means a.png and a.csv, `a.csv` itself."""
    if out is None:
        return None, None
    suffix = out.suffix.lower()
    if suffix not in (*PICTURE_SUFFIXES, ".csv"):
        raise InputError(f"--out {out}: expected a name that ends in {', '.join(PICTURE_SUFFIXES)} or .csv")
    table = out.with_suffix(".csv")
    picture = None if suffix == ".csv" else out
    if picture:
        require_matplotlib()
    for path in filter(None, (picture, table)):
        check_writable(path, force)
    return picture, table


def check_sounding_file(out: Path, force: bool) -> None:
    """Fail before the work if `--out` is no name for a sounding, or cannot be written."""
    _check_suffix(out, ".json", ".parquet")
    check_writable(out, force)


def check_table(out: Path | None, force: bool) -> None:
    """The same for a table, if one is asked for."""
    if out is not None:
        _check_suffix(out, ".csv")
        check_writable(out, force)


def check_writable(path: Path, force: bool) -> None:
    """Fail before the work if the file cannot be written after it; the folder is made."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; give another name")
    if path.exists() and not force:
        raise InputError(f"{path} exists; give another name, or --force to replace it")
    _make_folder(path.parent)
    remove_leftovers(path.parent, path)
    try_writing(path)


def _check_folder(folder: Path) -> None:
    """Fail before the work if the folder cannot be made after it; nothing is left behind."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"--out {folder}: expected a folder, but {there} is a file")
    try:
        try_writing(there / folder.name)
    except InputError as error:
        reason = getattr(error.__cause__, "strerror", None) or error.__cause__
        raise InputError(f"--out {folder}: cannot be written ({reason})") from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder}: cannot make the folder ({error.strerror})") from error


def write_table(table: pd.DataFrame, path: Path) -> None:
    """A CSV that appears once it is complete."""
    with complete_file(path) as part:
        table.to_csv(part, index=False)


def _check_suffix(out: Path, *known: str) -> None:
    if out.suffix.lower() not in known:
        raise InputError(f"--out {out}: expected a name that ends in {' or '.join(known)}")


class ResultFolder:
    """Tables and pictures of one command in one folder, or nowhere; written together at the end."""

    def __init__(self, folder: Path | None, force: bool) -> None:
        self._folder, self._force = folder, force
        self._tables: dict[str, pd.DataFrame] = {}
        self._pictures: dict[str, Callable[[], Figure]] = {}
        if folder is not None:
            require_matplotlib()
            if folder.is_file():
                raise InputError(f"--out {folder}: expected a folder, got a file")
            if folder.is_dir() and any(folder.iterdir()) and not force:
                raise InputError(
                    f"--out {folder}: is not empty; give another folder, or --force to write into it"
                )
            _check_folder(folder)

    def add(self, name: str, table: pd.DataFrame) -> None:
        """A CSV, with its index."""
        self._tables[name] = table

    def draw(self, name: str, figure: Callable[[], Figure]) -> None:
        """A picture, drawn only if there is a folder."""
        self._pictures[name] = figure

    def write(self) -> list[Path]:
        """Everything; the files that were written."""
        if self._folder is None:
            return []
        _make_folder(self._folder)
        for name, table in self._tables.items():
            write_table(table.reset_index(), self._folder / name)
        for name, figure in self._pictures.items():
            save_figure(figure(), self._folder / name)
        return [self._folder / name for name in (*self._tables, *self._pictures)]
