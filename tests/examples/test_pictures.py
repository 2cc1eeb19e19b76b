"""One script draws all pictures of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

from examples.pictures import PICTURES, main
from fathometer.errors import FathometerError

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs/images"
BY_HAND = {"architecture.svg"}


def test_every_picture_is_drawn_and_shown() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        name
        for page in pages
        for name in re.findall(r"\]\([\w./]*images/([\w.-]+)\)", page.read_text("utf-8"))
    }
    there = {file.name for file in IMAGES.iterdir()}
    assert there == shown == set(PICTURES) | BY_HAND


def test_pictures_are_small() -> None:
    assert sum(file.stat().st_size for file in IMAGES.iterdir()) < 4e6
    assert (IMAGES / "training.gif").stat().st_size < 2e6


def test_a_picture_is_drawn_from_what_is_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["resnets", "leaky-1a.png", "--out", str(tmp_path / "new")])
    assert capsys.readouterr().out.split() == ["resnets.png", "leaky-1a.png"]
    for name in ("resnets.png", "leaky-1a.png"):
        with Image.open(tmp_path / "new" / name) as drawn, Image.open(IMAGES / name) as kept:
            assert drawn.size == kept.size
            assert drawn.width == 1440


def test_a_picture_without_its_data_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["map-resnets", "--out", str(tmp_path), "--data", str(tmp_path)])
    assert "left as it is: needs resnet20*.th" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_failure_stops_the_program(tmp_path: Path) -> None:
    (tmp_path / "resnet20-broken.th").write_text("no weights", "utf-8")
    with pytest.raises(FathometerError, match="resnet20-broken"):
        main(["map-resnets", "--out", str(tmp_path / "new"), "--data", str(tmp_path)])


def test_a_name_that_is_not_known_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["leaky-1a", "resnet", "--out", str(tmp_path / "new")])
    assert "there is no picture 'resnet'; did you mean resnets.png?" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
