from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import Command
from tests.compare.soundings import sounding

RNG = np.random.default_rng(5)
pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    """Two families of three, far apart, with a companion."""
    del command  # which goes into this folder
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "nets").mkdir()
    for family, level, length in (("flat", 0.9, 8), ("deep", 0.5, 12)):
        for size in (1, 2, 3):
            trend = 0.02 * size * np.linspace(0, 1, length + size)[:, None]
            values = level + trend + 0.01 * RNG.random((length + size, 3))
            made = sounding(f"{family}{size}", values, cka=1 - values)
            made.save(tmp_path / "nets" / f"{family}{size}.json")
    facts = ["network,family,accuracy,depth"]
    facts += [f"{f}{s},{f.upper()},{70 + 5 * s},{10 * s}" for f in ("flat", "deep") for s in (1, 2, 3)]
    (tmp_path / "facts.csv").write_text("\n".join(facts))
    return tmp_path


@pytest.fixture
def networks(command: Command) -> Command:
    def run(*args: str) -> tuple[int, str, str]:
        return command("compare", "networks", *args)

    return run


def test_every_table_and_picture_is_written_into_a_folder(networks: Command, folder: Path) -> None:
    code, shown, _ = networks("nets", "--families", "facts.csv", "--draws", "10", "--out", "out")
    assert code == 0
    for words in (
        "nearest neighbour in the same family: 6 of 6 networks",
        "2 clusters and the families: adjusted Rand index 1.00",
        "batches resampled 10 times",
        "-1.00 ± 0.00",  # the companion is one minus the score
    ):
        assert words in shown
    written = {path.name for path in (folder / "out").iterdir()}
    assert written == {
        *("distances.csv", "statistics.csv", "families.csv", "merges.csv", "pairs.csv", "correlations.csv"),
        *("correlations_by_family.csv", "predictors.csv", "best_predictors.csv"),
        *("dendrogram.png", "distributions.png", "predictors.png"),
    }
    distances: Any = pd.read_csv("out/distances.csv", index_col="network")
    assert distances.shape == (6, 6)
    assert distances.loc["flat1", "flat2"] < 0.2 < distances.loc["flat1", "deep1"]
    clusters = pd.read_csv("out/statistics.csv", index_col="network")["cluster"]
    assert clusters.groupby(lambda name: name[:4]).nunique().to_list() == [1, 1]
    assert clusters.nunique() == 2
    assert min((folder / "out" / name).stat().st_size for name in written if name.endswith("png")) > 5000
    assert set(pd.read_csv("out/best_predictors.csv")["family"]) == {"FLAT", "DEEP"}
    code, _, err = networks("nets", "--out", "out")
    assert (code, "--out out: is not empty" in err) == (2, True)
    assert networks("nets", "--out", "out", "--force")[0] == 0


def test_families_by_pattern_and_from_a_file(networks: Command) -> None:
    patterns = ["--family", "F=flat*", "--family", "B=deep[12]"]
    code, shown, _ = networks("nets", *patterns, "--metric", "wasserstein")
    assert (code, "wasserstein distances of affinity" in shown, "5 of 5 networks" in shown) == (0, True, True)
    given = ["nets", "--families", "facts.csv", "--family", "R=flat1", "--family", "R=deep1", "--out", "out"]
    code, shown, _ = networks(*given)
    assert (code, "no predictor of accuracy" in shown) == (0, True)  # families of two each
    found = pd.read_csv("out/families.csv", index_col="network")["family"].to_dict()
    assert found == {
        "flat1": "R", "deep1": "R", "flat2": "FLAT", "flat3": "FLAT", "deep2": "DEEP", "deep3": "DEEP"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["absent.json"], "absent.json: no such file"),
        (["nets", "--family", "flat*"], "--family: expected NAME=PATTERN"),
        (["empty"], "expected a sounding (.json or .parquet) in this folder, got none"),
        (["nets", "--families", "absent.csv"], "absent.csv: cannot be read"),
        (["nets", "--families", "others.csv"], "none of its networks is among"),
        (["nets", "--out", "facts.csv"], "expected a folder, got a file"),
        (["nets", "--out", "facts.csv/x"], "error: facts.csv/x: Not a directory"),
        (["nets", "--clusters", "99"], "clusters: expected 1 to 6, got 99"),
        (["nets", "--metric", "cosine"], "'cosine' is not one of"),
        (["nets", "--gauge", "rank", "--out", "new"], "--gauge: 'rank' was not measured; choose from"),
    ],
)
def test_bad_requests(args: list[str], words: str, networks: Command, folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "others.csv").write_text("network,family\nother,A\n")
    code, _, err = networks(*args)
    assert (code, words in err) == (2, True)
    assert not (folder / "new").exists()


def test_other_data_other_weights_other_trainings(command: Command, folder: Path) -> None:
    sounding("a", [0.5, 0.6], data="images").save(folder / "1.json")
    sounding("a", [0.5, 0.9], data="noise").save(folder / "2.json")
    sounding("a", [0.4, 0.6], data="images", sha256="init").save(folder / "3.json")
    code, shown, _ = command("compare", "data", "1.json", "2.json", "--reference", "images", "--out", "d")
    assert (code, "0.300" in shown) == (0, True)
    assert pd.read_csv("d/deviation.csv")["noise"].to_list() == pytest.approx([0.3])
    code, shown, _ = command("compare", "conditions", "1.json", "3.json", "--over", "weights", "--out", "w")
    assert code == 0
    assert pd.read_csv("w/over.csv")["largest"].to_list() == pytest.approx([0.1])
    assert pd.read_csv("w/signatures.csv").shape == (2, 3)
    change = pd.read_csv("w/change.csv", index_col="site")
    assert change["before"].to_list() == [0.5, 0.6]
    assert change["change"].to_list() == pytest.approx([-0.1, 0.0])
    assert "before: trained 0, after: trained init," in " ".join(shown.split())
    assert command("compare", "trainings", "1.json", "3.json", "--out", "c")[0] == 0
    assert pd.read_csv("c/criteria.csv")["std"].to_list() == pytest.approx([0.025])
    code, _, err = command("compare", "data", "1.json", "2.json", "--reference", "cifar")
    assert (code, "--reference: a: expected a sounding on 'cifar'" in err) == (2, True)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "question",
    [
        ["networks"],
        ["data", "--reference", "photos"],
        ["conditions", "--over", "data"],
        ["conditions", "--over", "weights"],
        ["trainings"],
    ],
    ids=" ".join,
)
def test_a_mismatch_is_allowed_as_the_message_says(
    question: list[str], command: Command, folder: Path
) -> None:
    second: Any = {"data": "noise"} if question[-1] in ("data", "photos") else {"sha256": "1"}
    sounding("a", [0.5, 0.6]).save(folder / "1.json")
    sounding("a", [0.5, 0.9], samples=7, **second).save(folder / "2.json")
    code, _, err = command("compare", question[0], "1.json", "2.json", *question[1:])
    assert (code, "error: --allow-mismatch: these soundings differ: " in err) == (2, True)
    code, _, err = command("compare", question[0], "1.json", "2.json", *question[1:], "--allow-mismatch")
    assert (code, err.count("compared although they differ: samples")) == (0, 1)


def test_names_of_a_survey(command: Command, folder: Path) -> None:
    (folder / "found").mkdir()
    for number, (data, values) in enumerate({"z": [0.5, 0.6], "m": [0.5, 0.9], "a": [0.5, 0.7]}.items()):
        made = sounding("net", values, data=f"{number}.npz")
        settings = {**made.provenance.settings, "survey": {"data": data, "settings": ""}}
        made = replace(made, provenance=replace(made.provenance, settings=settings))
        made.save(folder / "found" / f"{number}.json")
    for reference in ("z", "0.npz"):
        code, _, _ = command("compare", "data", "found", "--reference", reference, "--out", reference)
        assert code == 0
        table = pd.read_csv(f"{reference}/deviation.csv", index_col="network")
        assert list(table.columns) == ["a", "m"]
        assert table.to_numpy()[0] == pytest.approx([0.1, 0.3])


@pytest.mark.filterwarnings("default")
def test_a_sounding_without_the_gauge_is_named_once(command: Command, folder: Path) -> None:
    for number in (1, 2, 3):
        gauges: dict[str, Any] = {} if number == 3 else {"cka": [0.1 * number, 0.2]}
        sounding("a", [0.5, 0.6], sha256=str(number), **gauges).save(folder / f"{number}.json")
    arguments = ["1.json", "2.json", "3.json", "--over", "weights", "--gauge", "cka", "--allow-mismatch"]
    code, _, err = command("compare", "conditions", *arguments)
    assert (code, err.count("left out of the comparison")) == (0, 1)


@pytest.mark.filterwarnings("default")
def test_files_and_facts_that_are_not_used_are_named(networks: Command, folder: Path) -> None:
    assert "given twice, used once: " in networks("nets/flat1.json", str(folder / "nets/flat1.json"))[2]
    assert "no accuracy is known; give it with --families FILE" in networks("nets")[1]
    with (folder / "facts.csv").open("a") as file:
        file.write("\nflat9,FLAT,1,1\ndepe1,DEEP,1,1\n")
    code, _, err = networks("nets", "--families", "facts.csv")
    assert (code, "facts.csv: no sounding of flat9, depe1; these rows are not used" in err) == (0, True)


def test_json_has_every_table(networks: Command) -> None:
    code, shown, _ = networks("nets", "--families", "facts.csv", "--json")
    found = json.loads(shown)
    assert code == 0
    assert set(found) >= {"distances", "statistics", "families", "correlations", "predictors"}
    assert {row["network"] for row in found["statistics"]} == {
        f"{f}{s}" for f in ("flat", "deep") for s in (1, 2, 3)
    }


def test_a_network_is_placed_among_the_reference(command: Command, folder: Path) -> None:
    code, shown, _ = command("compare", "reference", "nets/flat1.json", "--out", "placed")
    assert code == 0
    assert "flat1: nearest of" in shown
    nearest = pd.read_csv("placed/nearest.csv")
    assert list(nearest.columns) == ["network", "nearest", "distance", "data", "family", "accuracy", "year"]
    assert nearest["distance"].is_monotonic_increasing
    assert (folder / "placed" / "dendrogram.png").stat().st_size > 5000
    code, shown, _ = command("compare", "reference", "nets/flat1.json", "--json", "--gauge", "cka")
    assert set(json.loads(shown)) == {"nearest", "percentiles", "distances"}
