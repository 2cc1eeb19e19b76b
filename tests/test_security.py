"""What the program `security` of the soak relies on: traps that work, and a scan that sees."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fathometer
from soak.security.command import command
from soak.security.scan import ALLOWED, suspicious
from soak.security.shown import elements
from soak.security.trial import Trap


def test_a_trap_leaves_its_mark(tmp_path: Path) -> None:
    assert Trap(tmp_path / "mark").works()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import pickle", ["import pickle"]),
        ("from pickle import loads", ["import pickle"]),
        ("eval(x)", ["eval"]),
        ("torch.load(p)", ["torch.load without weights_only=True"]),
        ("torch.load(p, weights_only=False)", ["torch.load without weights_only=True"]),
        ("torch.load(p, weights_only=True)", []),
        ("np.load(p)", ["numpy.load without allow_pickle=False"]),
        ("np.load(p, allow_pickle=False)", []),
        ("os.system(x)", ["system"]),
        ("run(x, shell=True)", ["shell or trust_remote_code"]),
        ("pd.read_pickle(p)", ["read_pickle"]),
        ("model.eval()", []),
    ],
)
def test_the_scan_sees(code: str, found: list[str]) -> None:
    assert [name for _, name in suspicious(ast.parse(code))] == found


def test_every_exception_of_the_scan_is_needed() -> None:
    root = Path(fathometer.__file__).parent
    for name, call in ALLOWED:
        assert call in [found for _, found in suspicious(ast.parse((root / name).read_text("utf-8")))], name


def test_an_element_more_is_seen() -> None:
    assert elements("<p>a</p>") == elements("<p>&lt;b&gt;</p>")
    assert elements("<p>a</p>") != elements("<p><b></p>")
    assert elements('<p id="a">') != elements('<p id="a" onclick="b">')


def test_a_command_ends_as_for_a_user(tmp_path: Path) -> None:
    assert command("--version") == (0, f"fathometer {fathometer.__version__}\n")
    ran = command("show", str(tmp_path / "\x1b[2J.json"))
    assert ran.code == 2
    assert ran.text.startswith("error: ")
    assert "\u241b[2J" in ran.text
