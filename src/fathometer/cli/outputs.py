"""What a command prints and writes: files are checked before the work, and complete when they appear."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fathometer.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from fathometer.progress import Terminal

Content: TypeAlias = "pd.DataFrame | Figure | Callable[[], Figure]"
PICTURE_SUFFIXES = (".png", ".svg", ".pdf")
_MAX_SLUG = 80  # characters: two of them and an ending must make a name that file systems accept


def slug(name: str) -> str:
    """Shorten a name: `resnet18` for `torchvision:resnet18`, `cifar10-test` for `hf:uoft-cs/cifar10:test`."""
    kind, _, rest = name.partition(":")
    last = kind if kind == "random" else rest if kind == "hf" else name.rpartition(":")[2]
    stem = Path(last).name.removesuffix(Path(last).suffix if os.path.isfile(last) else "")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem)[:_MAX_SLUG].strip("-.") or "data"


def print_json(content: Any) -> None:
    """Print tables and plain values as JSON; a missing number is null."""
    print(json.dumps(_plain(content), indent=1, allow_nan=False))


def print_result(content: Any, view: RenderableType, as_json: bool) -> Terminal:
    """Print the content as JSON, or else its view; return the terminal for the lines below."""
    from fathometer.progress import Terminal

    terminal = Terminal(stderr=as_json)
    if as_json:
        print_json(content)
    else:
        terminal.print(view)
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


def check_writable(path: Path | None, force: bool, suffixes: Iterable[str] = (), flag: str = "--out") -> None:
    """Fail before the work if the file cannot be written after it; its folder is created."""
    from fathometer.results.files import remove_leftovers, try_writing

    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        raise InputError(f"{flag} {path}: expected a name that ends in {' or '.join(suffixes)}")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give another name")
    if path.exists() and not force:
        raise InputError(f"{path} exists; give another name, or --force to replace it")
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent, path)
    try_writing(path)


def check_folder(folder: Path, force: bool) -> None:
    """Fail before the work if files cannot be written into the folder after it; it is created."""
    if folder.is_file():
        raise InputError(f"--out {folder}: expected a folder, got a file")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise InputError(f"--out {folder}: is not empty; give another folder, or --force to write into it")
    check_writable(folder / "tables.csv", force=True)


def file_stems(names: Iterable[str]) -> list[str]:
    """Return a name for a file for each of several names, without regard to case no two the same.

    Example:
        >>> file_stems(["tiger cat", "Tiger/cat", "…"])
        ['tiger-cat', 'Tiger-cat-2', 'file']
    """
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^\w.-]+", "-", name)[:_MAX_SLUG].strip("-.") or "file"
        stem, number = plain, 2
        while stem.lower() in map(str.lower, found):
            stem, number = f"{plain}-{number}", number + 1
        found.append(stem)
    return found


def picture_and_table(out: Path | None, force: bool) -> list[Path]:
    """Return the files of `--out`, checked: `a.png` means a.png and a.csv, `a.csv` only itself."""
    if out is None:
        return []
    if out.suffix.lower() == ".csv":
        check_writable(out, force)
        return [out]
    from fathometer.report import require_matplotlib

    require_matplotlib()
    check_writable(out, force, (*PICTURE_SUFFIXES, ".csv"))
    check_writable(out.with_suffix(".csv"), force)
    return [out.with_suffix(".csv"), out]


def write_files(files: Mapping[Path, Content], terminal: Terminal) -> None:
    """Write tables as .csv and pictures, and say so; each file appears once it is complete."""
    import pandas as pd

    from fathometer.report import save_figure
    from fathometer.results.files import complete_file

    for path, content in files.items():
        if isinstance(content, pd.DataFrame):
            with complete_file(path) as part:
                content.to_csv(part, index=content.index.name is not None)
        else:
            save_figure(content() if callable(content) else content, path)
        terminal.say(f"wrote {path}")


class ResultFolder:
    """Tables and pictures of one command: shown as they come, and written into a folder at the end.

    With `as_json` nothing is shown, and all tables are printed at the end.
    """

    def __init__(self, folder: Path | None, force: bool, as_json: bool) -> None:
        from fathometer.progress import Terminal

        self._folder, self._as_json, self._terminal = folder, as_json, Terminal(stderr=as_json)
        self._tables: dict[str, pd.DataFrame] = {}
        self._pictures: dict[str, Callable[[], Figure]] = {}
        if folder is None:
            return
        from fathometer.report import require_matplotlib

        require_matplotlib()
        check_folder(folder, force)

    def show(self, table: pd.DataFrame, title: str, note: str = "", number: str = ".3f") -> None:
        """Show a table in the terminal."""
        from fathometer.cli.tables import TableView

        if not self._as_json:
            is_matrix = list(table.columns) == list(table.index)
            words = table if is_matrix else table.rename(columns=lambda name: str(name).replace("_", " "))
            self._terminal.print(TableView(words, title, note, number))

    def say(self, line: str) -> None:
        """Print a line below the tables."""
        if not self._as_json:
            self._terminal.say(line)

    def add(self, name: str, table: pd.DataFrame) -> None:
        """Keep a table for NAME.csv."""
        self._tables[name] = table

    def draw(self, name: str, figure: Callable[[], Figure]) -> None:
        """Keep a picture for NAME.png, drawn only if there is a folder."""
        self._pictures[name] = figure

    def finish(self) -> None:
        """Print JSON if it was asked for, and write everything if there is a folder."""
        if self._as_json:
            print_json(self._tables)
        if self._folder is not None:
            files: dict[Path, Content] = {self._folder / f"{n}.csv": t for n, t in self._tables.items()}
            files |= {self._folder / f"{n}.png": figure for n, figure in self._pictures.items()}
            write_files(files, self._terminal)
