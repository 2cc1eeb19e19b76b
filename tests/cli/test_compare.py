from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fathometer.cli import main
from tests.compare.soundings import sounding

RNG = np.random.default_rng(5)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two families of three, far apart, with a companion."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "nets").mkdir()
    for family, level, length in (("flat", 0.9, 8), ("bent", 0.5, 12)):
        for size in (1, 2, 3):
            trend = 0.02 * size * np.linspace(0, 1, length + size)[:, None]
            values = level + trend + 0.01 * RNG.random((length + size, 3))
            made = sounding(f"{family}{size}", values, cka=1 - values)
            made.save(tmp_path / "nets" / f"{family}{size}.json")
    facts = ["network,family,accuracy,depth"]
    facts += [f"{f}{s},{f.upper()},{70 + 5 * s},{10 * s}" for f in ("flat", "bent") for s in (1, 2, 3)]
    (tmp_path / "facts.csv").write_text("\n".join(facts))
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *args: str, command: str = "networks") -> int:
    monkeypatch.setattr(sys, "argv", ["fathometer", "compare", command, *args])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_everything_into_a_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "nets", "--families", "facts.csv", "--draws", "10", "--out", "out") == 0
    shown = capsys.readouterr().out
    assert "nearest neighbour in the same family: 6 of 6 networks" in shown
    assert "2 clusters and the families: adjusted Rand index 1.00" in shown
    assert "p < 0.05" in shown
    assert "Table 2" in shown  # for each network, and
    assert "Table 1" in shown  # for each family
    assert "batches resampled 10 times" in shown
    assert "-1.00 ± 0.00" in shown  # the companion is one minus the score
    written = {path.name for path in (folder / "out").iterdir()}
    assert written == {
        *("distances.csv", "statistics.csv", "families.csv", "merges.csv", "pairs.csv", "correlations.csv"),
        *("correlations_by_family.csv", "predictors.csv", "best_predictors.csv"),
        *("dendrogram.png", "distributions.png", "predictors.png"),
    }
    distances: Any = pd.read_csv(folder / "out" / "distances.csv", index_col="network")
    assert distances.shape == (6, 6)
    assert distances.loc["flat1", "flat2"] < 0.2 < distances.loc["flat1", "bent1"]
    clusters = pd.read_csv(folder / "out" / "statistics.csv", index_col="network")["cluster"]
    assert clusters.groupby(lambda name: name[:4]).nunique().to_list() == [1, 1]
    assert clusters.nunique() == 2
    assert min((folder / "out" / name).stat().st_size for name in written if name.endswith("png")) > 5000
    best = pd.read_csv(folder / "out" / "best_predictors.csv")
    assert set(best["family"]) == {"FLAT", "BENT"}
    assert run(monkeypatch, "nets", "--out", "out") == 2
    assert "--out out: is not empty" in capsys.readouterr().err
    assert run(monkeypatch, "nets", "--out", "out", "--force") == 0


@pytest.mark.usefixtures("folder")
def test_families_by_pattern_and_the_order_ignored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["nets", "--family", "F=flat*", "--family", "B=bent[12]", "--metric", "wasserstein"]
    assert run(monkeypatch, *given, "--clusters", "3") == 0
    shown = capsys.readouterr().out
    assert "wasserstein distances of affinity" in shown
    assert "5 of 5 networks" in shown
    assert run(monkeypatch, *given, "--family", "X=x*") == 2
    assert "family X: no network matches 'x*'" in capsys.readouterr().err
    assert run(monkeypatch, *given, "--family", "flat*") == 2
    assert "--family: expected NAME=PATTERN" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_patterns_add_to_each_other_and_to_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["nets", "--families", "facts.csv", "--family", "R=flat1", "--family", "R=bent1", "--out", "out"]
    assert run(monkeypatch, *given) == 0
    shown = capsys.readouterr().out
    assert "no predictor of accuracy" in shown  # families of two each
    found = pd.read_csv("out/families.csv", index_col="network")["family"].to_dict()
    assert found == {
        "flat1": "R", "bent1": "R", "flat2": "FLAT", "flat3": "FLAT", "bent2": "BENT", "bent3": "BENT"
    }  # fmt: skip


@pytest.mark.usefixtures("folder")
def test_what_fewer_than_three_know_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = pd.read_csv("facts.csv")
    facts.loc[0, "depth"] = None
    facts.to_csv("facts.csv", index=False)
    assert run(monkeypatch, "nets", "--families", "facts.csv") == 0
    assert "FLAT: depth left out, known for 2 networks" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_two_networks_have_no_cophenetic_correlation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "nets/flat1.json", "nets/flat2.json") == 0
    shown = capsys.readouterr().out
    assert "nan" not in shown
    assert "cophenetic" not in shown


@pytest.mark.filterwarnings("default")
def test_what_cannot_be_compared(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sounding("odd", RNG.random(5), data="noise", cka=RNG.random(5)).save(folder / "odd.json")
    assert run(monkeypatch, "nets", "odd.json") == 2
    assert "data: photos in most, but not in odd (noise)" in capsys.readouterr().err
    assert run(monkeypatch, "nets", "odd.json", "--allow-mismatch", "--draws", "2") == 0
    streams = capsys.readouterr()
    assert streams.err.count("compared although they differ: data: photos in most") == 1
    assert "with one batch, and so never resampled: odd" in streams.out
    assert run(monkeypatch, "nets", "--gauge", "rank") == 2
    assert "--gauge: 'rank' was not measured, but affinity, cka" in capsys.readouterr().err
    assert run(monkeypatch, "nets", "--metric", "euclidean") == 2
    assert (
        "needs signatures of the same length, but bent1 has 13 sites and bent2 14" in capsys.readouterr().err
    )
    assert run(monkeypatch, "nets/flat1.json") == 2
    assert "at least two networks" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["absent.json"], "absent.json: no such file"),
        (["facts.csv"], "expected a sounding, a file that ends in"),
        (["empty"], "expected a sounding (.json or .parquet) in this folder, got none"),
        (["nets", "--families", "absent.csv"], "absent.csv: cannot be read"),
        (["nets", "--families", "others.csv"], "none of its networks is among"),
        (["nets", "--out", "facts.csv"], "expected a folder, got a file"),
        (["nets", "--clusters", "0"], "Invalid value"),
        (["nets", "--clusters", "99"], "clusters: expected 1 to 6, got 99"),
        (["nets", "--metric", "cosine"], "'cosine' is not one of"),
        (["nets", "--gauge", "affin"], "did you mean affinity?"),
        (["nets", "--out", "facts.csv/x"], "expected a folder, but"),
    ],
)
def test_bad_requests(
    args: list[str],
    words: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "empty").mkdir()
    (folder / "others.csv").write_text("network,family\nother,A\n")
    assert run(monkeypatch, *args) == 2
    assert words in capsys.readouterr().err


def test_other_data_other_settings_other_trainings(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sounding("a", [0.5, 0.6], data="images").save(folder / "1.json")
    sounding("a", [0.5, 0.9], data="noise").save(folder / "2.json")
    sounding("a", [0.4, 0.6], data="images", sha256="init").save(folder / "3.json")
    assert run(monkeypatch, "1.json", "2.json", "--reference", "images", "--out", "d", command="data") == 0
    assert "0.300" in capsys.readouterr().out
    assert pd.read_csv(folder / "d" / "deviation.csv")["noise"].to_list() == pytest.approx([0.3])
    assert run(monkeypatch, "1.json", "3.json", "--over", "weights", "--out", "w", command="conditions") == 0
    assert pd.read_csv(folder / "w" / "over.csv")["largest"].to_list() == pytest.approx([0.1])
    assert pd.read_csv(folder / "w" / "signatures.csv").shape == (2, 3)
    change = pd.read_csv(folder / "w" / "change.csv", index_col="site")
    assert change["before"].to_list() == [0.5, 0.6]
    assert change["change"].to_list() == pytest.approx([-0.1, 0.0])
    shown = capsys.readouterr().out
    assert "before: trained 0, after: trained init," in " ".join(shown.split())
    assert run(monkeypatch, "3.json", "1.json", "--over", "weights", "--out", "v", command="conditions") == 0
    assert pd.read_csv(folder / "v" / "change.csv")["change"].to_list() == pytest.approx([0.1, 0.0])
    assert run(monkeypatch, "1.json", "3.json", "--out", "c", command="trainings") == 0
    assert pd.read_csv(folder / "c" / "criteria.csv")["std"].to_list() == pytest.approx([0.025])
    assert run(monkeypatch, "1.json", "2.json", "--reference", "cifar", command="data") == 2
    assert "--reference: a: expected a sounding on 'cifar'" in capsys.readouterr().err


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "question",
    [
        ["data", "--reference", "images"],
        ["conditions", "--over", "data"],
        ["conditions", "--over", "weights"],
        ["trainings"],
    ],
)
def test_what_is_advised_can_be_done(
    question: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sounding("a", [0.5, 0.6], data="images").save(folder / "1.json")
    second = {"sha256": "1"} if question[-1] in ("weights", "trainings") else {"data": "noise"}
    sounding("a", [0.5, 0.9], samples=7, **second).save(folder / "2.json")  # type: ignore[arg-type]
    if question[-1] in ("weights", "trainings"):
        sounding("a", [0.5, 0.6]).save(folder / "1.json")
    assert run(monkeypatch, "1.json", "2.json", *question[1:], command=question[0]) == 2
    assert "error: --allow-mismatch: needed to compare" in capsys.readouterr().err
    assert run(monkeypatch, "1.json", "2.json", *question[1:], "--allow-mismatch", command=question[0]) == 0
    assert capsys.readouterr().err.count("compared although they differ: samples") == 1


@pytest.mark.parametrize(
    "question",
    [
        ["networks"],
        ["conditions", "--over", "data"],
        ["trainings"],
        ["data", "--reference", "photos"],
        ["networks", "--draws", "3"],
    ],
)
def test_no_number_is_cut_at_80_columns(
    question: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"a_network_with_a_long_name_of_a_family_{i}" for i in range(6)]
    more = {key: RNG.random(9) for key in ("cka", "norm", "sparsity_change", "entropy_change", "r2")}
    for i, name in enumerate(names):
        kind = {"data": f"photos{i or ''}"} if "data" in question or "--reference" in question else {}
        called = name if "networks" in question else "one"
        sounding(called, RNG.random((9, 2)), sha256="0" if kind else str(i), **kind, **more).save(  # type: ignore[arg-type]
            folder / f"{i}.json"
        )
    (folder / "f.csv").write_text("network,family\n" + "\n".join(f"{n},a family of networks" for n in names))
    given = ["--families", "f.csv"] if "networks" in question else []
    assert run(monkeypatch, *(f"{i}.json" for i in range(6)), *question[1:], *given, command=question[0]) == 0
    shown = capsys.readouterr().out
    assert not re.search(r"\d…", shown)
    if given:
        for name in names:
            assert shown.count(name) >= 4  # in one line of each table


def test_random_weights_are_called_by_their_seed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in (0, 1):
        made = sounding("net", [0.5, 0.5 + seed / 4], weights="none", sha256=f"hash{seed}", seed=seed)
        made.save(folder / f"{seed}.json")
    assert run(monkeypatch, "0.json", "1.json") == 0
    shown = capsys.readouterr().out
    assert "net, seed 0" in shown
    assert "hash" not in shown
    assert run(monkeypatch, "0.json", "1.json", "--over", "weights", "--out", "w", command="conditions") == 0
    assert pd.read_csv("w/signatures.csv").columns.to_list() == ["site", "seed 0", "seed 1"]
    capsys.readouterr()
    assert run(monkeypatch, "0.json", "1.json", "--over", "seed", command="conditions") == 2
    assert "--over: net: the seed also drew the weights" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_failure_leaves_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "nets", "--gauge", "none", "--out", "deep/out") == 2
    assert not Path("deep").exists()
    assert run(monkeypatch, "nets", "--out", "deep/out") == 0
    assert Path("deep/out/statistics.csv").exists()
    assert not list(Path().glob(".*"))


@pytest.mark.filterwarnings("default")
def test_what_was_given_in_vain_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "nets/flat1.json", str(folder / "nets" / "flat1.json")) == 2
    assert "given twice, used once: " in capsys.readouterr().err
    assert run(monkeypatch, "nets") == 0
    assert (
        "no predictor of accuracy: no accuracy is known; give it with --families FILE"
        in capsys.readouterr().out
    )
    with (folder / "facts.csv").open("a") as file:
        file.write("\nflat9,FLAT,1,1\nbnet1,BENT,1,1\n")
    assert run(monkeypatch, "nets", "--families", "facts.csv") == 0
    assert "facts.csv: no sounding of flat9, bnet1; these rows are not used" in capsys.readouterr().err


def test_what_nothing_sets_apart_is_called_by_its_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = sounding("net", [0.5, 0.6], cka=[0.5, 1])
    one.save(folder / "with.json")
    sounding("net", [0.5, 0.6]).save(folder / "without.json")
    assert run(monkeypatch, "with.json", "without.json", "--gauge", "cka") == 2
    assert "'cka' was not measured in net, without.json" in capsys.readouterr().err


def test_what_does_not_vary_goes_with_nothing_and_that_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        sounding(name, RNG.random(6), cka=RNG.random(6), r2=np.ones(6), norm=np.full(6, 3.0)).save(
            folder / f"{name}.json"
        )
    (folder / "f.csv").write_text("network,family\na,A\nb,B\n")
    assert run(monkeypatch, "a.json", "b.json", "--families", "f.csv") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "R² in the sample is 1 at every site: it does not vary" in shown
    assert "norm: – where it does not vary over sites" in shown
    families = next(line for line in shown.split("│ A │")[1:])
    assert "±" not in families.partition("B │")[0]  # one network has no std


@pytest.mark.usefixtures("folder")
def test_json_has_every_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "nets", "--families", "facts.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) >= {"distances", "statistics", "families", "correlations", "predictors"}
    assert {row["network"] for row in found["statistics"]} == {
        f"{f}{s}" for f in ("flat", "bent") for s in (1, 2, 3)
    }
