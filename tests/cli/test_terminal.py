from __future__ import annotations

import json
import signal

import numpy as np
import pandas as pd
import pytest
import torch
from rich.table import Table
from rich.text import Text

from fathometer.cli import main
from fathometer.cli.outputs import print_json
from fathometer.progress import Terminal, progress_bar, visible


def printed(*things: object) -> str:
    console = Terminal()
    with console.capture() as caught:
        for thing in things:
            console.print(thing, soft_wrap=True)
    return caught.get()


def test_markup_is_printed_as_text() -> None:
    table = Table(title="[bold]title[/bold]", caption="[/nothing]")
    table.add_column("[red]head")
    table.add_row("[link=https://example.org]cell[/link] :skull:")
    text = printed("[bold]line[/bold]", table)
    for word in ("[bold]line[/bold]", "[bold]title[/bold]", "[/nothing]", "[red]head", "[link=", ":skull:"):
        assert word in text


@pytest.mark.parametrize(
    "name", ["\x1b[31m", "\x1b]0;title\x07", "\x9b2J", "\rover", "\x08", "\u202egnp", "\x00"]
)
def test_control_characters_are_printed_visibly(name: str) -> None:
    table = Table()
    table.add_column(Text(name))
    table.add_row(Text(name), style="bold")
    text = printed(name, Text(name, "dim"), table)
    assert text.replace("\n", "").isprintable()


def test_broken_text_can_be_encoded() -> None:
    assert printed("a\udce9").encode() == "a\ufffd\n".encode()
    assert visible("plain, ΣΤ, naïve\n\t") == "plain, ΣΤ, naïve\n\t"


def test_a_progress_bar_prints_its_notes_as_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # so that rich draws the bar, and would colour it
    monkeypatch.setenv("COLUMNS", "200")
    evil = "[red]bold[/red] \x1b]0;owned\x07\u2028line"
    with progress_bar(evil) as show:
        show(1, 2, evil)
    text = capsys.readouterr().err
    assert text.count(visible(evil)) >= 2
    assert "\x1b]0;" not in text
    assert "\x07" not in text


def test_no_progress_bar_goes_into_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("measuring") as show:
        show(1, 2)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory. Tried 9 GB")])
def test_out_of_memory_is_one_line(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise error

    monkeypatch.setattr("fathometer.cli.app.app", fails)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: out of memory; use fewer samples or smaller batches\n"


def test_json_keeps_every_digit(capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.DataFrame({"x": [1.25e-30, np.nan], "n": [1, 2], "ok": [True, False]}, index=["a", "b"])
    print_json({"table": table.rename_axis("site"), "largest": np.float64("inf")})
    assert json.loads(capsys.readouterr().out) == {
        "table": [
            {"site": "a", "x": 1.25e-30, "n": 1, "ok": True},
            {"site": "b", "x": None, "n": 2, "ok": False},
        ],
        "largest": None,
    }


def test_debug_shows_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words, shown in (([], False), (["--debug"], True)):
        monkeypatch.setattr("sys.argv", ["fathometer", "show", "missing.json", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        text = capsys.readouterr().err
        assert text.endswith("error: missing.json: no such file or folder\n")
        assert ("Traceback" in text) == shown


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_interrupt_while_libraries_are_imported_is_one_line(
    wrapped: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an extension module turns it into an error of its own."""

    def importing() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as stop:
            if wrapped:
                raise ImportError("initialization failed") from stop
            raise

    monkeypatch.setattr("fathometer.cli.app.app", importing)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "Interrupted.\n"
