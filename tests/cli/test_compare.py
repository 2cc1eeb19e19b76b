from __future__ import annotations

import json
import re
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
    assert distances.loc["flat1", "flat2"] < 0.2 < distances.loc["flat1", "bent1"]
    clusters = pd.read_csv("out/statistics.csv", index_col="network")["cluster"]
    assert clusters.groupby(lambda name: name[:4]).nunique().to_list() == [1, 1]
    assert clusters.nunique() == 2
    assert min((folder / "out" / name).stat().st_size for name in written if name.endswith("png")) > 5000
    assert set(pd.read_csv("out/best_predictors.csv")["family"]) == {"FLAT", "BENT"}
    code, _, err = networks("nets", "--out", "out")
    assert (code, "--out out: is not empty" in err) == (2, True)
    assert networks("nets", "--out", "out", "--force")[0] == 0


def test_families_by_pattern(networks: Command) -> None:
    given = ["nets", "--family", "F=flat*", "--family", "B=bent[12]", "--metric", "wasserstein"]
    code, shown, _ = networks(*given, "--clusters", "3")
    assert (code, "wasserstein distances of affinity" in shown, "5 of 5 networks" in shown) == (0, True, True)
    for pattern, message in (("X=x*", "family X: no network matches 'x*'"), ("flat*", "expected NAME=PATT")):
        code, _, err = networks(*given, "--family", pattern)
        assert (code, message in err) == (2, True)


def test_patterns_add_to_each_other_and_to_the_file(networks: Command) -> None:
    given = ["nets", "--families", "facts.csv", "--family", "R=flat1", "--family", "R=bent1", "--out", "out"]
    code, shown, _ = networks(*given)
    assert (code, "no predictor of accuracy" in shown) == (0, True)  # families of two each
    found = pd.read_csv("out/families.csv", index_col="network")["family"].to_dict()
    assert found == {
        "flat1": "R", "bent1": "R", "flat2": "FLAT", "flat3": "FLAT", "bent2": "BENT", "bent3": "BENT"
    }  # fmt: skip


def test_a_characteristic_that_is_known_for_two_networks_is_left_out(networks: Command) -> None:
    facts = pd.read_csv("facts.csv")
    facts.loc[0, "depth"] = None
    facts.to_csv("facts.csv", index=False)
    code, shown, _ = networks("nets", "--families", "facts.csv")
    assert (code, "FLAT: depth left out, known for 2 networks" in shown) == (0, True)


def test_two_networks_have_no_cophenetic_correlation(networks: Command) -> None:
    code, shown, _ = networks("nets/flat1.json", "nets/flat2.json")
    assert (code, "nan" in shown, "cophenetic" in shown) == (0, False, False)


@pytest.mark.filterwarnings("default")
def test_a_mismatch_is_compared_only_on_request(networks: Command, folder: Path) -> None:
    sounding("odd", RNG.random(5), data="noise", cka=RNG.random(5)).save(folder / "odd.json")
    code, _, err = networks("nets", "odd.json")
    assert (code, "data: photos in most, but not in odd (noise)" in err) == (2, True)
    code, shown, err = networks("nets", "odd.json", "--allow-mismatch", "--draws", "2")
    assert (code, err.count("compared although they differ: data: photos in most")) == (0, 1)
    assert "with one batch, and so never resampled: odd" in shown


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["absent.json"], "absent.json: no such file"),
        (["facts.csv"], "expected a result, a file that ends in"),
        (["empty"], "expected a sounding (.json or .parquet) in this folder, got none"),
        (["nets/flat1.json"], "at least two networks"),
        (["nets", "--families", "absent.csv"], "absent.csv: cannot be read"),
        (["nets", "--families", "others.csv"], "none of its networks is among"),
        (["nets", "--out", "facts.csv"], "expected a folder, got a file"),
        (["nets", "--out", "facts.csv/x"], "error: facts.csv/x: Not a directory"),
        (["nets", "--clusters", "0"], "Invalid value"),
        (["nets", "--clusters", "99"], "clusters: expected 1 to 6, got 99"),
        (["nets", "--metric", "cosine"], "'cosine' is not one of"),
        (["nets", "--metric", "euclidean"], "needs signatures of the same length, but bent1 has 13 sites"),
        (["nets", "--gauge", "affin"], "did you mean affinity?"),
        (
            ["nets", "--gauge", "rank", "--out", "new"],
            "--gauge: 'rank' was not measured; choose from",
        ),
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


QUESTIONS = [
    ["data", "--reference", "photos"],
    ["conditions", "--over", "data"],
    ["conditions", "--over", "weights"],
    ["trainings"],
]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_a_mismatch_is_allowed_as_the_message_says(
    question: list[str], command: Command, folder: Path
) -> None:
    second: Any = {"sha256": "1"} if question[-1] in ("weights", "trainings") else {"data": "noise"}
    sounding("a", [0.5, 0.6]).save(folder / "1.json")
    sounding("a", [0.5, 0.9], samples=7, **second).save(folder / "2.json")
    code, _, err = command("compare", question[0], "1.json", "2.json", *question[1:])
    assert (code, "error: --allow-mismatch: needed to compare" in err) == (2, True)
    code, _, err = command("compare", question[0], "1.json", "2.json", *question[1:], "--allow-mismatch")
    assert (code, err.count("compared although they differ: samples")) == (0, 1)


@pytest.mark.parametrize("question", [*QUESTIONS, ["networks", "--draws", "3"]], ids=" ".join)
def test_no_number_is_cut_at_80_columns(
    question: list[str], command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"a_network_with_a_long_name_of_a_family_{i}" for i in range(6)]
    more: Any = {key: RNG.random(9) for key in ("cka", "norm", "sparsity_change", "entropy_change", "r2")}
    for i, name in enumerate(names):
        other: Any = (
            {"data": f"photos{i or ''}"} if question[-1] in ("data", "photos") else {"sha256": str(i)}
        )
        called = name if "networks" in question else "one"
        sounding(called, RNG.random((9, 2)), **other, **more).save(folder / f"{i}.json")
    (folder / "f.csv").write_text("network,family\n" + "\n".join(f"{n},a family of networks" for n in names))
    given = ["--families", "f.csv"] if "networks" in question else []
    files = [f"{i}.json" for i in range(6)]
    code, shown, _ = command("compare", question[0], *files, *question[1:], *given)
    assert code == 0
    assert not re.search(r"\d…", shown)


def test_random_weights_are_called_by_their_seed(command: Command, folder: Path) -> None:
    for seed in (0, 1):
        made = sounding("net", [0.5, 0.5 + seed / 4], weights="none", sha256=f"hash{seed}", seed=seed)
        made.save(folder / f"{seed}.json")
    code, shown, _ = command("compare", "networks", "0.json", "1.json")
    assert (code, "net, seed 0" in shown, "hash" in shown) == (0, True, False)
    code, _, err = command("compare", "conditions", "0.json", "1.json", "--over", "seed")
    assert (code, "differ in seed, got one; if the weights differ" in err) == (2, True)


@pytest.mark.filterwarnings("default")
def test_files_and_facts_that_are_not_used_are_named(networks: Command, folder: Path) -> None:
    assert "given twice, used once: " in networks("nets/flat1.json", str(folder / "nets/flat1.json"))[2]
    assert "no accuracy is known; give it with --families FILE" in networks("nets")[1]
    with (folder / "facts.csv").open("a") as file:
        file.write("\nflat9,FLAT,1,1\nbnet1,BENT,1,1\n")
    code, _, err = networks("nets", "--families", "facts.csv")
    assert (code, "facts.csv: no sounding of flat9, bnet1; these rows are not used" in err) == (0, True)


def test_two_soundings_that_nothing_sets_apart_are_called_by_their_files(
    networks: Command, folder: Path
) -> None:
    sounding("net", [0.5, 0.6], cka=[0.5, 1]).save(folder / "with.json")
    sounding("net", [0.5, 0.6]).save(folder / "without.json")
    code, _, err = networks("with.json", "without.json", "--gauge", "cka")
    assert (code, "'cka' was not measured in net, without.json" in err) == (2, True)


def test_a_constant_companion_is_named(networks: Command, folder: Path) -> None:
    for name in "ab":
        constant: Any = {"r2": np.ones(6), "norm": np.full(6, 3.0)}
        sounding(name, RNG.random(6), cka=RNG.random(6), **constant).save(folder / f"{name}.json")
    code, shown, _ = networks("a.json", "b.json")
    assert code == 0
    assert "R² in the sample is 1 at every site: it does not vary" in " ".join(shown.split())
    assert "norm: – where it does not vary over sites" in " ".join(shown.split())


def test_json_has_every_table(networks: Command) -> None:
    code, shown, _ = networks("nets", "--families", "facts.csv", "--json")
    found = json.loads(shown)
    assert code == 0
    assert set(found) >= {"distances", "statistics", "families", "correlations", "predictors"}
    assert {row["network"] for row in found["statistics"]} == {
        f"{f}{s}" for f in ("flat", "bent") for s in (1, 2, 3)
    }
