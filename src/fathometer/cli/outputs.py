"""What a command prints and writes: files are checked before the work, and complete when they appear."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fathometer.errors import FathometerError, InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from fathometer.progress import Terminal

PICTURES = (".png", ".svg", ".pdf")
_LONGEST = 80  # characters: two of them and an ending must make a name that file systems accept


def slug(name: str) -> str:
    """Shorten a name: `resnet18` for `torchvision:resnet18`, `photos` for `some/photos/`."""
    last = name.partition(":")[0] if name.startswith("random:") else name.rpartition(":")[2]
    stem = Path(last).name.removesuffix(Path(last).suffix if os.path.isfile(last) else "")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem)[:_LONGEST].strip("-.") or "data"


def print_json(content: Any) -> None:
    """Print tables and plain values as JSON; a missing number is null."""
    print(json.dumps(_plain(content), indent=1, allow_nan=False))


def print_result(content: Any, view: Callable[[Terminal], RenderableType], as_json: bool) -> Terminal:
    """Print JSON, or else what `view` makes of the terminal; return the terminal for lines below it."""
    from fathometer.progress import Terminal

    terminal = Terminal(stderr=as_json)
    if as_json:
        print_json(content)
    else:
        terminal.print(view(terminal))
    return terminal


def _plain(content: Any) -> Any:
    if hasattr(content, "columns"):  # a table; its index becomes a column, unless it only counts the rows
        named = content if content.index.name is None else content.reset_index()
        return _plain(named.to_dict("records"))
    if isinstance(content, Mapping):
        return {str(key): _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    value = content.item() if hasattr(content, "item") else content  # a number of NumPy
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_writable(path: Path, force: bool, suffixes: Iterable[str] = ()) -> None:
    """Fail before the work if the file cannot be written after it; its folder is created."""
    from fathometer.results.files import remove_leftovers, try_writing

    if suffixes and path.suffix.lower() not in suffixes:
        raise InputError(f"--out {path}: expected a name that ends in {' or '.join(suffixes)}")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give another name")
    if path.exists() and not force:
        raise InputError(f"{path} exists; give another name, or --force to replace it")
    _make_folder(path.parent)
    remove_leftovers(path.parent, path)
    try_writing(path)


def picture_and_table(out: Path | None, force: bool) -> tuple[Path | None, Path | None]:
    """Return the picture and the table of `--out`: `a.png` means a.png and a.csv, `a.csv` only itself."""
    if out is None:
        return None, None
    table = out.with_suffix(".csv")
    picture = None if out.suffix.lower() == ".csv" else out
    if picture:
        from fathometer.report import require_matplotlib

        require_matplotlib()
        check_writable(picture, force, (*PICTURES, ".csv"))
    check_writable(table, force)
    return picture, table


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a CSV that appears once it is complete."""
    from fathometer.results.files import complete_file

    with complete_file(path) as part:
        table.to_csv(part, index=False)


class ResultFolder:
    """Tables and pictures of one command: shown as they come, and written into a folder at the end.

    With `as_json` nothing is shown, and all tables are printed at the end.
    """

    def __init__(self, folder: Path | None, force: bool, as_json: bool) -> None:
        from fathometer.progress import Terminal

        self._folder, self._as_json, self._console = folder, as_json, Terminal(stderr=as_json)
        self._tables: dict[str, pd.DataFrame] = {}
        self._pictures: dict[str, Callable[[], Figure]] = {}
        if folder is not None:
            from fathometer.report import require_matplotlib

            require_matplotlib()
            if folder.is_file():
                raise InputError(f"--out {folder}: expected a folder, got a file")
            if folder.is_dir() and any(folder.iterdir()) and not force:
                raise InputError(
                    f"--out {folder}: is not empty; give another folder, or --force to write into it"
                )
            _check_folder(folder)

    def show(self, table: pd.DataFrame, title: str, note: str = "", digits: int = 3) -> None:
        """Show a table in the terminal."""
        from fathometer.cli.tables import frame_view

        if not self._as_json:
            self._console.print(frame_view(table, title, note, digits, width=self._console.width))

    def say(self, line: str) -> None:
        """Print a line below the tables."""
        if not self._as_json:
            self._console.say(line)

    def add(self, name: str, table: pd.DataFrame) -> None:
        """Keep a table, with its index, for NAME.csv."""
        self._tables[name] = table

    def draw(self, name: str, figure: Callable[[], Figure]) -> None:
        """Keep a picture for NAME.png, drawn only if there is a folder."""
        self._pictures[name] = figure

    def finish(self) -> None:
        """Print JSON if it was asked for, and write everything if there is a folder."""
        if self._as_json:
            print_json(self._tables)
        if self._folder is None:
            return
        from fathometer.report import save_figure

        _make_folder(self._folder)
        written = []
        for name, table in self._tables.items():
            written.append(self._folder / f"{name}.csv")
            write_table(table.reset_index(), written[-1])
        for name, figure in self._pictures.items():
            written.append(self._folder / f"{name}.png")
            save_figure(figure(), written[-1])
        for path in written:
            self._console.say(f"wrote {path}")


def _check_folder(folder: Path) -> None:
    """Fail before the work if the folder cannot be created after it; nothing is left behind."""
    from fathometer.results.files import try_writing

    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise InputError(f"--out {folder}: expected a folder, but {existing} is a file")
    try:
        try_writing(existing / folder.name)
    except FathometerError as error:
        reason = getattr(error.__cause__, "strerror", None) or error.__cause__
        raise InputError(f"--out {folder}: cannot be written ({reason})") from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder}: the folder cannot be created ({error.strerror})") from error
