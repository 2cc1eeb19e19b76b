"""One script draws all pictures of the documentation."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs/images"
BY_HAND = {"architecture.svg"}
pictures = importlib.import_module("examples.pictures")  # a script, not a package: mypy would see it twice


def test_every_picture_is_drawn_and_shown() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        name
        for page in pages
        for name in re.findall(r"\]\([\w./]*images/([\w.-]+)\)", page.read_text("utf-8"))
    }
    there = {file.name for file in IMAGES.iterdir()}
    assert there == shown == set(pictures.PICTURES) | BY_HAND


def test_pictures_are_small() -> None:
    assert sum(file.stat().st_size for file in IMAGES.iterdir()) < 4e6
    assert (IMAGES / "training.gif").stat().st_size < 2e6


def test_a_picture_is_drawn_from_what_is_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pictures.main(["resnets", "leaky-1a.png", "--out", str(tmp_path / "new")])
    assert capsys.readouterr().out.split() == ["resnets.png", "leaky-1a.png"]
    for name in ("resnets.png", "leaky-1a.png"):
        with Image.open(tmp_path / "new" / name) as drawn, Image.open(IMAGES / name) as kept:
            assert drawn.size == kept.size
            assert drawn.width == 1440


def test_a_picture_without_its_data_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pictures.main(["map-resnets", "--out", str(tmp_path), "--data", str(tmp_path)])
    assert "left as it is: needs resnet20*.th" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SystemExit):
        pictures.main(["no such picture"])
