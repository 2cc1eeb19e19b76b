from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pytest

from fathometer.leaky import Design, Phase, Recipe, Teacher, load_sweep, sweep, sweeping
from fathometer.progress import ProgressCallback
from tests.cli.conftest import Command, call

pytestmark = pytest.mark.filterwarnings("ignore:.*not at a critical point")  # these train for a moment

SIZE = ["--width", "8", "--task-samples", "40", "--epochs", "40", "--device", "cpu"]
TRAIN = ["leaky", "train", *SIZE, "--depth", "2", "--layers", "4", "--rank", "1"]
OWN = ["leaky", "train", "--width", "8", "--epochs", "40", "--device", "cpu", "--depth", "2", "--layers", "4"]
SWEEP = ["leaky", "sweep", "--preset", "quick", *SIZE, "--ranks", "1", "--layers", "4"]
RANK = re.compile(r"bottleneck rank: (\d+) \(gap (\d+\.\d|inf)\)")
GAP = r"\(gap at least (\d+\.\d|inf)\)"
RANKS = re.compile(rf"bottleneck rank: \d in \d of \d networks {GAP}")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `one`, a network, and `depths`, a sweep of two depths and two seeds."""
    folder = tmp_path_factory.mktemp("trained")
    assert call(*TRAIN, "--out", str(folder / "one")) == 0
    assert call(*SWEEP, "--depths", "1,2", "--seeds", "2", "--out", str(folder / "depths")) == 0
    return folder


def own_data(scale: float = 1.0) -> dict[str, Any]:
    x = scale * np.random.default_rng(0).normal(size=(30, 5))
    return {"x": x, "y": np.maximum(x[:, :3], 0)}


def last_line(out: str) -> str:
    return out.strip().splitlines()[-1]


def tensor_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.safetensors"))}


def test_train_and_measure_one_network(command: Command, tmp_path: Path) -> None:
    code, out, err = command(*TRAIN)
    assert code == 0, err
    assert "L̃ = 2, L = 4, width 8, k* = 1, seed 0: train" in out
    assert "trained 1 network in" in out
    assert RANK.fullmatch(last_line(out))
    [found] = load_sweep(tmp_path / "leaky-2-1-0").runs
    assert (found.design.samples, found.design.width, found.task.rank) == (40, 8, 1)
    assert found.history["epoch"].max() == 40
    code, again, err = command("leaky", "measure", "leaky-2-1-0", "--out", "new/points.csv")
    assert code == 0, err
    assert "wrote new/points.csv" in again
    assert last_line(again) == last_line(out)
    table = pd.read_csv("new/points.csv")
    assert table["p"].to_list() == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert {"cost_of_identity", "affinity", "hamiltonian", "crit"} <= set(table.columns)
    assert table["hamiltonian"].isna().to_list() == [False] * 4 + [True]  # no layer starts at the end


def test_presets_and_phases_reach_the_network(command: Command) -> None:
    given = "--second-order 5 --tolerance 1e-9 --scheme adaptive --seed 7 --decay .2 --latents centred"
    code, _, err = command(*TRAIN, *given.split(), "--teacher", "resnet", "--out", "run")
    assert code == 0, err
    found = load_sweep("run")
    design = found.runs[0].design
    assert (design.scheme, design.seed, design.decay) == ("adaptive", 7, 0.2)
    assert design.teacher is not None
    assert (design.teacher.kind, design.teacher.latents, design.teacher.seed) == ("resnet", "centred", 7)
    assert [(phase.method, phase.epochs) for phase in found.recipe.phases] == [("adam", 40), ("lbfgs", 5)]
    assert found.recipe.tolerance == 1e-9


def test_a_sweep_trains_every_design(command: Command) -> None:
    code, out, err = command(
        *SWEEP, "--depths", "1,2", "--schemes", "equidistant, adaptive", "--seeds", "1", "--ranks", "1,6x2"
    )
    assert code == 0, err
    assert "trained 8 networks in" in out
    lines = out.strip().splitlines()[-2:]
    for rank, line in zip((1, 2), lines, strict=True):  # one for each task
        assert re.fullmatch(rf"bottleneck rank, k\* = {rank}: \d in [1-4] of 4 networks {GAP}", line)
    _, out, _ = command("leaky", "figures", "leaky-sweep", "--only", "scheme=adaptive", "--out", "mixed")
    assert "got several values of rank; keep one of each (`only`)" in " ".join(out.split())
    code, out, err = command("leaky", "figures", "leaky-sweep", "--only", "scheme=adaptive,rank=1")
    assert (code, "wrote leaky-sweep/figures/1a.png" in out) == (0, True), err
    designs = [each.design for each in load_sweep("leaky-sweep").runs]
    assert {design.teacher.dimensions for design in designs if design.teacher} == {
        (30, 1, 30),
        (30, 6, 2, 30),
    }
    choices = itertools.product((1.0, 2.0), ("equidistant", "adaptive"))
    assert {(design.effective_depth, design.scheme) for design in designs} == set(choices)


def test_a_sweep_and_one_of_its_networks_are_measured(command: Command, trained: Path) -> None:
    depths = str(trained / "depths")
    code, out, err = command("leaky", "measure", depths, "--out", "table.csv")
    assert code == 0, err
    assert RANKS.fullmatch(last_line(out))
    table = pd.read_csv("table.csv")
    assert table[["effective_depth", "seed"]].to_numpy().tolist() == [[1, 0], [1, 1], [2, 0], [2, 1]]
    code, out, err = command("leaky", "measure", depths, "--json")
    assert [row["effective_depth"] for row in json.loads(out)] == [1, 1, 2, 2]
    assert RANKS.fullmatch(last_line(err))
    for given in (["--network", "3"], ["--only", "depth=2,seed=1"]):
        code, out, _ = command("leaky", "measure", depths, *given)
        assert "network 3: L̃ = 2, L = 4, width 8, k* = 1, seed 1: train" in out


def test_a_run_is_read_by_url(command: Command, trained: Path, tmp_path: Path) -> None:
    fsspec.filesystem("memory").put(str(trained / "one"), "/leaky-run", recursive=True)
    for place in ((trained / "one").as_uri(), "memory://leaky-run"):
        assert command("leaky", "measure", place) == command("leaky", "measure", str(trained / "one"))
        assert command("leaky", "theory", place)[0] == 0
    assert command("leaky", "figures", "memory://leaky-run")[0] == 0
    assert (tmp_path / "figures/1b.png").exists()


def test_figures_are_written_or_a_reason_is_given(command: Command, trained: Path, tmp_path: Path) -> None:
    code, out, err = command("leaky", "figures", str(trained / "one"), "--out", "pictures", "--format", "svg")
    assert code == 0, err
    written = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert written == ["1b.svg", "1c.svg", "affinity.svg"]
    assert "wrote pictures/1b.svg" in out
    assert [line.split(":")[0] for line in out.splitlines() if line.startswith("no ")] == [
        "no 1a", "no 2a", "no 2b", "no 2c", "no 3"
    ]  # fmt: skip
    code, _, err = command("leaky", "figures", str(trained / "one"), "--out", "pictures", "--format", "svg")
    assert (code, "pictures/1b.svg exists" in err) == (2, True)
    code, out, err = command("leaky", "figures", str(trained / "depths"), "--out", "pictures", "--force")
    assert code == 0, err
    assert {"1a.png", "3.png"} <= {path.name for path in (tmp_path / "pictures").iterdir()}
    assert "1b, 1c and affinity show network 2: L̃ = 2" in " ".join(out.split())
    code, out, err = command("leaky", "figures", str(trained / "depths"), "--only", "depth=1", "--out", "one")
    assert (code, "show network 0: L̃ = 1" in " ".join(out.split())) == (0, True)
    assert not (tmp_path / "one/1a.png").exists()


def test_statements_of_the_paper(command: Command, trained: Path) -> None:
    code, out, err = command("leaky", "theory", str(trained / "depths"), "--out", "theory.csv", "--details")
    assert code == 0, err
    assert "L̃ = 2, L = 4, width 8, k* = 1, seed 0" in out
    table = pd.read_csv("theory.csv")
    assert table["name"].str.startswith("Proposition 1").any()
    assert last_line(out) == f"{table['holds'].sum()} of {len(table)} statements hold"
    code, out, _ = command("leaky", "theory", str(trained / "depths"), "--network", "1", "--gamma", "0.1")
    assert code == 0
    assert "network 1: L̃ = 1, L = 4, width 8, k* = 1, seed 1" in out
    code, out, _ = command("leaky", "theory", str(trained / "depths"), "--only", "depth=1,seed=0")
    assert "network 0: L̃ = 1" in out
    assert "Footnote 1: not for σ = relu, it is about linear networks" in " ".join(out.split())
    _, out, _ = command("leaky", "theory", str(trained / "one"), "--json")
    assert {"network", "name", "claim", "holds", "left", "right", "margin", "error", "paper"} <= set(
        json.loads(out)[0]
    )


def test_theory_takes_the_deepest_network_that_did_not_diverge(command: Command, tmp_path: Path) -> None:
    shallow = Design(0.5, 2, 8, teacher=Teacher((4, 1, 4)), samples=20, test_samples=20)
    deep = replace(shallow, effective_depth=8.0, layers=12)  # shallow with its depth would be refused
    found = sweep([shallow, deep], Recipe((Phase("adam", 20),)))
    found.save(tmp_path / "both")
    code, out, _ = command("leaky", "theory", "both")
    assert (code, "L̃ = 8, L = 12" in out) == (0, True)
    replace(found, runs=(found.runs[0], replace(found.runs[1], diverged=10))).save(tmp_path / "one")
    code, out, _ = command("leaky", "theory", "one")
    assert (code, "L̃ = 0.5, L = 2" in out) == (0, True)
    code, out, _ = command("leaky", "theory", "one", "--network", "1")
    assert (code, "diverged at epoch 10" in out) == (0, True)
    replace(found, runs=tuple(replace(one, diverged=10) for one in found.runs)).save(tmp_path / "none")
    code, _, err = command("leaky", "theory", "none")
    assert (code, "expected a network that did not diverge" in err) == (2, True)


def test_an_interrupted_sweep_is_resumed_to_the_same_bytes(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @contextmanager
    def interrupted(_: str) -> Iterator[ProgressCallback]:
        calls = iter(range(12))

        def show(done: int, total: int | None, note: str = "") -> None:
            del done, total, note
            if next(calls, None) is None:
                raise KeyboardInterrupt

        yield show

    given = [*SWEEP, "--depths", "2", "--seeds", "2"]
    code, _, err = command(*given, "--out", "whole")
    assert code == 0, err
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["fathometer.cli.leaky.building"], "progress_bar", interrupted)
        patch.setattr(sweeping, "CHECKPOINT_EVERY", 0.0)
        code, _, err = command(*given, "--out", "parts")
    assert code != 0
    assert "Interrupted. Run the same command with --resume to continue." in err
    assert list((tmp_path / "parts").glob("checkpoint-*"))
    code, _, err = command("leaky", "measure", "parts")
    assert (code, "run the same training again with resume" in err) == (2, True)
    code, _, err = command(*given, "--out", "parts")
    assert (code, "use resume to continue it" in err) == (2, True)
    code, _, err = command(*given, "--out", "parts", "--resume", "--decay", "1")
    assert (code, "holds another sweep" in err) == (2, True)
    code, _, err = command(*given, "--out", "parts", "--resume")
    assert code == 0, err
    assert tensor_files(tmp_path / "parts") == tensor_files(tmp_path / "whole")


def test_a_task_from_a_file(command: Command) -> None:
    data = own_data()
    np.savez("own.npz", **data, x_test=data["x"][:9], y_test=data["y"][:9], other=np.array(["unused"]))
    code, out, err = command(*OWN, "--task", "own.npz", "--out", "run")
    assert code == 0, err
    assert "width 8, seed 0: train" in out  # no k*, which is not known
    [found] = load_sweep("run").runs
    np.testing.assert_array_equal(found.task.x.numpy(), data["x"])
    assert (found.design.teacher, found.task.rank, len(found.task.x_test)) == (None, None, 9)


def test_divergence_is_reported_with_its_epoch(command: Command) -> None:
    np.savez("big.npz", **own_data(scale=1e30))
    code, _, err = command(*OWN, "--task", "big.npz", "--out", "run")
    assert code == 2
    assert "training diverged: the loss was not finite at epoch 1 (the last finite weights are in run)" in err
    _, out, _ = command("leaky", "measure", "run")
    assert "diverged at epoch 1" in " ".join(out.split())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([*TRAIN, "--depth", "5"], "layers: equidistant steps need L ≥ L̃ = 5, got L = 4"),
        ([*TRAIN, "--device", "warp"], "--device: warp is not usable here"),
        ([*SWEEP, "--depths", "1,,2"], "--depths: expected numbers with commas, got '1,,2'"),
        ([*SWEEP, "--ranks", "40"], "--ranks: expected inner dimensions below"),
        ([*SWEEP, "--schemes", "foo"], "--schemes: expected one of equidistant, irregular, adaptive, got"),
        ([*TRAIN, "--depth", "-1"], "--depth: expected a finite number from 0, got -1.0"),
        ([*TRAIN, "--out", "s3://bucket/run"], "expected a path on this machine, got the URL s3://bucket/run"),
        ([*SWEEP, "--ranks", "6xx3"], "--ranks: expected whole numbers from 1 with commas, as 2,3 or 6x3"),
        ([*TRAIN, "--out", "full"], "full: expected a new or empty folder"),
        ([*OWN, "--task", "none.npz"], "error: none.npz: No such file or directory"),
        ([*OWN, "--task", "text.npz"], "--task: text.npz: expected an .npz with real numbers"),
        (["leaky", "measure", "nowhere"], "nowhere: expected a folder"),
        (["leaky", "measure", "ONE", "--network", "1"], "--network: expected 0, for there is one network"),
        (["leaky", "measure", "ONE", "--out", "t.txt"], "--out t.txt: expected a name that ends in .csv"),
        (["leaky", "theory", "DEPTHS", "--only", "seed=9"], "no network of the sweep has seed = 9; it has"),
        (["leaky", "theory", "DEPTHS", "--only", "colour=2"], "--only: expected values of depth, rank"),
        (["leaky", "theory", "DEPTHS", "--only", "seed=0", "--network", "1"], "choose both; leave one out"),
        ([*TRAIN, "--sigma", "softmax"], "--sigma: expected identity, an elementwise function of torch"),
        (["leaky", "theory", "ONE", "--gamma", "0"], "--gamma: expected a finite number > 0, got 0.0"),
        ([*TRAIN, "--out", "ONE"], "holds a sweep already; use resume to continue it"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_before_any_training(
    given: list[str],
    message: str,
    command: Command,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("trained")

    monkeypatch.setattr(sweeping._Trainer, "train", never)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/precious.txt").write_text("precious")
    (tmp_path / "text.npz").write_text("no numbers")
    before = sorted(tmp_path.rglob("*"))
    places = {"ONE": str(trained / "one"), "DEPTHS": str(trained / "depths")}
    code, _, err = command(*(places.get(word, word) for word in given))
    assert code == 2
    assert message in re.sub(r"[\s│]+", " ", err)
    assert "Traceback" not in err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_plain_resnet_has_no_bottleneck_rank(command: Command) -> None:
    code, out, _ = command(*TRAIN[:-6], "--depth", "0", "--rank", "1", "--out", "plain")
    assert (code, last_line(out).startswith("bottleneck rank: none (in a plain ResNet")) == (0, True)
    code, out, _ = command(*SWEEP, "--depths", "0,2", "--seeds", "1", "--out", "several")
    assert (code, RANKS.fullmatch(last_line(out)) is not None) == (0, True)
    code, out, _ = command("leaky", "theory", "plain")
    assert (code, "Section 1.2" in out) == (0, True)


def test_another_ridge_gives_another_cost(command: Command, trained: Path) -> None:
    costs = []
    for gamma in ("1e-3", "1e-1"):
        _, out, _ = command("leaky", "measure", str(trained / "one"), "--gamma", gamma, "--json")
        costs.append([row["cost_of_identity"] for row in json.loads(out)])
    assert (np.array(costs[1]) < np.array(costs[0])).all()


def test_options_of_a_random_task_are_refused_with_a_task_from_a_file(command: Command) -> None:
    np.savez("own.npz", **own_data())
    code, _, err = command(*TRAIN, "--task", "own.npz")
    assert code == 2
    assert "--rank and --task-samples: only for a random task" in err
