from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fathometer.cli.app import app
from fathometer.errors import InputError
from fathometer.leaky import load_sweep
from fathometer.report import save_figure
from fathometer.report.figures.kinds import KINDS
from fathometer.results.history import History
from tests.report.figures.drawn import network, transformer


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight soundings in `nets`, two of one kind beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets").mkdir()
    for i in range(8):
        network(f"{'ab'[i % 2]}{i}", 20 + i, seed=i).save(tmp_path / "nets" / f"{i}.json")
    values = np.linspace(9, 2, 12)
    network("mine", rank=values).save(tmp_path / "mine.json")
    network("yours", 15, seed=1).save(tmp_path / "yours.json")
    network("walk", stable_rank=values, stable_rank_in=values, speed=values).save(tmp_path / "walk.json")
    transformer("words").save(tmp_path / "words.json")
    rows = [f"{'ab'[i % 2]}{i},{'AB'[i % 2]},{60 + (7 * i) % 5},{2012 + i}" for i in range(8)]
    (tmp_path / "facts.csv").write_text("\n".join(["network,family,accuracy,year", *rows]))
    return tmp_path


def run(*args: str) -> str:
    result = CliRunner().invoke(app, ["plot", *args], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def width(path: Path) -> int:
    """Of a PNG, in pixels."""
    return int.from_bytes(path.read_bytes()[16:20], "big")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (["mine.json"], "signature"),
        (["mine.json", "yours.json"], "overlay"),
        (["nets"], "distances"),
        (["walk.json"], "path"),
        (["words.json"], "layers"),
    ],
)
def test_the_default_kind_follows_from_the_files(given: list[str], kind: str, folder: Path) -> None:
    stem = Path(given[0]).stem
    assert f"wrote {stem}-{kind}.pdf" in run(*given)
    assert (folder / f"{stem}-{kind}.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_has_the_width_of_one_column(kind: str, folder: Path) -> None:
    given = {
        "signature": ["mine.json"],
        "map": ["mine.json"],
        "path": ["walk.json"],
        "layers": ["words.json"],
        "gauges": ["words.json"],
        "alignment": ["mine.json", "yours.json"],
        "difference": ["mine.json", "yours.json"],
    }.get(kind, ["nets"])
    if "families" in KINDS[kind].options:
        given += ["--families", "facts.csv"]
    run(*given, "--kind", kind, "--columns", "1", "--out", "figure.png")
    assert width(folder / "figure.png") == 1050


def test_several_formats_at_once_and_no_overwriting(folder: Path) -> None:
    shown = run("mine.json", "-o", "a.pdf", "-o", "a.svg", "-o", "new/a.png", "--strip", "--distribution")
    assert [line for line in shown.splitlines() if line] == ["wrote a.pdf", "wrote a.svg", "wrote new/a.png"]
    before = (folder / "a.svg").read_bytes()
    with pytest.raises(InputError, match=r"a\.svg exists; give another name, or --force"):
        run("mine.json", "-o", "a.svg")
    assert (folder / "a.svg").read_bytes() == before
    run("mine.json", "-o", "a.svg", "--force", "--gauge", "rank")
    assert b">rank<" in (folder / "a.svg").read_bytes()


@pytest.mark.filterwarnings("ignore:.*not at a critical point")
def test_a_leaky_run_and_a_sweep(leaky_runs: Path, folder: Path) -> None:
    assert "wrote one-1c.pdf" in run(str(leaky_runs / "one"))
    assert "wrote depths-1a.pdf" in run((leaky_runs / "depths").as_uri())
    assert "wrote depths-1c.pdf" in run(str(leaky_runs / "depths"), "--network", "1")
    for path in folder.glob("*.pdf"):
        path.unlink()
    run(str(leaky_runs / "depths"), "--kind", "training", "--network", "1", "--columns", "1", "-o", "b.svg")
    save_figure(load_sweep(leaky_runs / "depths").runs[1].plot("training", columns=1), folder / "same.svg")
    assert (folder / "b.svg").read_bytes() == (folder / "same.svg").read_bytes()
    with pytest.raises(InputError, match="network: expected a number from 0 to 1, got 2"):
        run(str(leaky_runs / "depths"), "--network", "2")
    with pytest.raises(InputError, match=r"kind: expected one of 1a, 1b.*, got 'strip'"):
        run(str(leaky_runs / "one"), "--kind", "strip")
    with pytest.raises(InputError, match="--families, --strip, --allow-mismatch: has no effect on --kind 1c"):
        run(str(leaky_runs / "one"), "--families", "facts.csv", "--strip", "--allow-mismatch")


def test_options_change_the_picture(folder: Path) -> None:
    run("mine.json", "yours.json", "--along", "dtw", "-o", "dtw.svg")
    run("mine.json", "yours.json", "-o", "depth.svg")
    run("nets", "--metric", "wasserstein", "--linkage", "ward", "--family", "A=a*", "-o", "ward.svg")
    run("nets", "-o", "plain.svg")
    assert (folder / "dtw.svg").read_bytes() != (folder / "depth.svg").read_bytes()
    assert (folder / "ward.svg").read_bytes() != (folder / "plain.svg").read_bytes()


def test_a_history(folder: Path) -> None:
    soundings = tuple(network("mine", 8, seed=seed, rank=np.arange(8.0)) for seed in range(3))
    History((0, 5, 9), soundings).save(folder / "h.json")
    assert "wrote h-history.pdf" in run("h.json")
    run("h.json", "--columns", "1", "--gauge", "rank", "-o", "h.png")
    assert width(folder / "h.png") == 1050
    ranks = tuple(replace(each, records=each.records.drop(columns="affinity")) for each in soundings)
    History((0, 5, 9), ranks).save(folder / "ranks.json")
    assert "wrote ranks-history.pdf" in run("ranks.json")
    with pytest.raises(InputError, match="kind: expected history, got 'strip'"):
        run("h.json", "--kind", "strip")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["mine.json", "--out", "a.gif"], "--out a.gif: expected a name that ends in .png or .svg or .pdf"),
        (["mine.json", "--kind", "pie"], "kind: expected one of signature, strip"),
        (["mine.json", "--gauge", "speed"], "'speed' was not measured; choose from affinity, rank"),
        (["mine.json", "--network", "1"], "--network: has no effect on --kind signature; leave it out"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_bad_requests_are_explained(args: list[str], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        run(*args)
