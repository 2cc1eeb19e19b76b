"""Prints the tables of docs/companions.md and docs/dimensions.md, and draws their pictures.

    python -m examples.gauges --out demo

The pairs are made up, so that the right value of each gauge is known: 512 samples in 64 dimensions by
default.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from fathometer import (
    affinity_score,
    cka,
    cka_debiased,
    cost_of_identity,
    entropy,
    nonnegativity,
    norm,
    r2,
    r2_heldout,
    sparsity,
    stable_rank,
)
from fathometer.gauges import alpha, effective_rank, intrinsic_dimension, participation_ratio, rankme
from fathometer.report import (
    GREY,
    column_figure,
    for_print,
    legend_above,
    note_below,
    save_figure,
    series_style,
)

Matrix = npt.NDArray[np.float64]
SAMPLES, WIDTH, RANK = 512, 64, 5
SHIFTS = np.linspace(-3, 3, 25)
FEW_WIDTHS = (64, 256, 512, 2048)
WIDTHS = (8, 16, 32, 64, 128, 256, 384, 512, 768, 1024)
GAMMAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
COMPANIONS: dict[str, Callable[[Matrix, Matrix], float]] = {
    "affinity score": lambda x, y: float(affinity_score(x, y)),
    "CKA": lambda x, y: float(cka(x, y)),
    "CKA without bias": lambda x, y: float(cka_debiased(x, y)),
    "R² in the sample": lambda x, y: float(r2(x, y)),
    "R² held out": lambda x, y: float(r2_heldout(x, y)),
}
DIMENSIONS: dict[str, Callable[[Matrix], float]] = {
    "cost of identity": lambda x: float(cost_of_identity(x, relu(x))),
    "stable rank of X": lambda x: float(stable_rank(x, x)["x"]),
    "stable rank of ReLU(X)": lambda x: float(stable_rank(x, relu(x))["y"]),
}
RANKS: dict[str, Callable[[Matrix], float]] = {
    "effective rank": lambda x: float(effective_rank(x, x)["x"]),
    "participation ratio": lambda x: float(participation_ratio(x, x)["x"]),
    "RankMe": lambda x: float(rankme(x, x)["x"]),
    "α": lambda x: float(alpha(x, x)["x"]),
    "TwoNN": lambda x: float(intrinsic_dimension(x, x)["twonn_x"]),
    "likelihood": lambda x: float(intrinsic_dimension(x, x)["mle_x"]),
}


def relu(x: Matrix) -> Matrix:
    """max(x, 0)."""
    return np.maximum(x, 0)


def maps() -> dict[str, tuple[Matrix, Matrix]]:
    """Pairs whose nature is known, from standard normal inputs."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(SAMPLES, WIDTH))
    rotation = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
    return {
        "ReLU(x)": (x, relu(x)),
        "ReLU(x + 3), x + 3 the input": (x + 3, relu(x + 3)),
        "10x + 3": (x, 10 * x + 3),
        "−x": (x, -x),
        "x turned by a rotation": (x, x @ rotation),
        "the modulus of x": (x, np.abs(x)),
        "x with its rows shuffled": (x, rng.permutation(x)),
        "independent of x": (x, rng.normal(size=x.shape)),
        "0": (x, np.zeros_like(x)),
    }


def clouds() -> dict[str, Matrix]:
    """Representations whose dimension is known."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(SAMPLES, WIDTH))
    flat = low_rank(rng)
    heavy = x.copy()
    heavy[0] *= 1000
    return {
        "rank 5, all ≥ 0": np.abs(rng.normal(size=(SAMPLES, RANK))) @ np.abs(rng.normal(size=(RANK, WIDTH))),
        "rank 5, normal": flat,
        "rank 5, normal, plus 3": flat + 3,
        "rank 5, normal, with noise of .01": flat + 0.01 * x,
        "normal in 64 dimensions": x,
        "the same plus 3": x + 3,
        "the same, one sample 1000 times as large": heavy,
    }


def low_rank(rng: np.random.Generator) -> Matrix:
    """Five independent dimensions, spread over 64 features; entries have variance 1."""
    return rng.normal(size=(SAMPLES, RANK)) @ rng.normal(size=(RANK, WIDTH)) / RANK**0.5


def companion_table() -> list[str]:
    """A row for each map."""
    heads = (
        "y",
        "affinity",
        "CKA",
        "CKA without bias",
        "R²",
        "R² held out",
        "sparsity change",
        "entropy change",
        "norm",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, (x, y) in maps().items():
        scores = [f"{gauge(x, y):.3f}" for gauge in COMPANIONS.values()]
        changes = [f"{float(gauge(x, y)['change']):.3f}" for gauge in (sparsity, entropy)]
        lines.append(f"| {' | '.join([name, *scores, *changes, f'{float(norm(x, y)):.0f}'])} |")
    return lines


def width_table() -> list[str]:
    """What the number of features does: to ReLU, and to two samples that have nothing in common."""
    rng = np.random.default_rng(0)
    lines = [
        f"| | gauge | {' | '.join(f'd = {d}' for d in (8, *FEW_WIDTHS))} |",
        "|---" * (len(FEW_WIDTHS) + 3) + "|",
    ]
    wide = {d: rng.normal(size=(SAMPLES, d)) for d in (8, *FEW_WIDTHS)}
    others = {d: rng.normal(size=x.shape) for d, x in wide.items()}
    for name, images in {"ReLU(x)": {d: relu(x) for d, x in wide.items()}, "independent": others}.items():
        for gauge, value in COMPANIONS.items():
            row = [f"{value(x, images[d]):.3f}" for d, x in wide.items()]
            lines.append(f"| {' | '.join([name, gauge, *row])} |")
    return lines


def odd_cases() -> list[str]:
    """One outlier for the entropy, one large direction for CKA and R²."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(SAMPLES, WIDTH))
    far = x.copy()
    far[0, 0] = 1000
    large, other = rng.normal(size=(2, SAMPLES, WIDTH))
    large[:, 0] *= 30
    other[:, 0] = large[:, 0]
    before, outlier = float(entropy(x, x)["before"]), float(entropy(far, far)["before"])
    shared = [f"{name} {gauge(large, other):.3f}" for name, gauge in COMPANIONS.items()]
    return [
        f"entropy of a normal sample: {before:.2f}, with one entry of 1000: {outlier:.2f}",
        f"one of 64 directions in common, 30 times as large: {', '.join(shared)}",
    ]


def dimension_table() -> list[str]:
    """A row for each cloud."""
    names = ("entries ≥ 0", "energy ≥ 0")
    lines = [f"| X | {' | '.join([*DIMENSIONS, *names])} |", "|---" * (len(DIMENSIONS) + 3) + "|"]
    for name, x in clouds().items():
        shares = nonnegativity(x, relu(x))
        values = [f"{gauge(x):.2f}" for gauge in DIMENSIONS.values()]
        values += [f"{float(shares[key]):.3f}" for key in ("entries", "energy")]
        lines.append(f"| {' | '.join([name, *values])} |")
    return lines


def rank_table() -> list[str]:
    """A row for each cloud, and for a curved one."""
    rng = np.random.default_rng(0)
    plane = rng.random((SAMPLES, 2)) @ rng.normal(size=(2, WIDTH))
    lines = [f"| X | {' | '.join(RANKS)} |", "|---" * (len(RANKS) + 1) + "|"]
    for name, x in {**clouds(), "a curved plane: sin(3x)": np.sin(3 * plane)}.items():
        lines.append(f"| {' | '.join([name, *(f'{gauge(x):.2f}' for gauge in RANKS.values())])} |")
    return lines


def gamma_table() -> list[str]:
    """The cost of identity by its ridge."""
    found = clouds()
    chosen = {name: found[name] for name in ("rank 5, all ≥ 0", "rank 5, normal", "normal in 64 dimensions")}
    lines = [f"| γ₀ | {' | '.join(f'{gamma:g}' for gamma in GAMMAS)} |", "|---" * (len(GAMMAS) + 1) + "|"]
    for name, x in chosen.items():
        costs = [f"{float(cost_of_identity(x, relu(x), gamma=gamma)):.1f}" for gamma in GAMMAS]
        lines.append(f"| {' | '.join([name, *costs])} |")
    return lines


@for_print
def companion_picture() -> Figure:
    """ReLU on N(μ, 1): by μ on the left, by the number of features on the right."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(SAMPLES, WIDTH))
    wide = {d: rng.normal(size=(SAMPLES, d)) for d in WIDTHS}
    figure = column_figure(2, 2.6)
    left, right = figure.subplots(1, 2, sharey=True)
    for number, (name, gauge) in enumerate(COMPANIONS.items()):
        looks = series_style(number) | {"markersize": 2.5}
        left.plot(SHIFTS, [gauge(x + shift, relu(x + shift)) for shift in SHIFTS], label=name, **looks)
        right.plot(WIDTHS, [gauge(x, relu(x)) for x in wide.values()], **looks)
    changes = [float(sparsity(x + shift, relu(x + shift))["change"]) for shift in SHIFTS]
    left.plot(SHIFTS, changes, label="sparsity, change", **series_style(5) | {"markersize": 2.5})
    left.set(xlabel="mean μ of the inputs, 64 features", ylabel="value of the gauge", ylim=(-0.05, 1.05))
    right.set(xlabel="features (log scale), μ = 0", xscale="log")
    right.set_xticks([8, 64, 512, 1024], ["8", "64", "512", "1024"])
    right.minorticks_off()
    right.axvline(SAMPLES, color=GREY, linewidth=0.6)
    legend_above(figure, left.get_legend_handles_labels()[0])
    note_below(figure, [f"grey: as many features as samples, {SAMPLES}"])
    return figure


@for_print
def dimension_picture() -> Figure:
    """A cloud of rank 5 that moves into the non-negative; and what the ridge makes of it."""
    flat = low_rank(np.random.default_rng(0))
    found = clouds()
    figure = column_figure(2, 2.7)
    left, right = figure.subplots(1, 2)
    shifts = np.linspace(0, 4, 17)
    for number, (name, gauge) in enumerate(DIMENSIONS.items()):
        values = [gauge(flat + shift) for shift in shifts]
        left.plot(shifts, values, label=name, **series_style(number) | {"markersize": 2.5})
    left.set(xlabel="shift of a cloud of rank 5", ylabel="dimensions (log scale)", yscale="log")
    left.set_yticks([1, 2, 5, 6, 10, 50], ["1", "2", "5", "6", "10", "50"])
    left.minorticks_off()
    left.axhline(RANK + 1, color=GREY, linewidth=0.6)
    gammas = np.geomspace(1e-8, 1e-1, 22)
    for number, name in enumerate(("rank 5, all ≥ 0", "rank 5, normal"), len(DIMENSIONS)):
        x = found[name]
        costs = [float(cost_of_identity(x, relu(x), gamma=gamma)) for gamma in gammas]
        right.plot(gammas, costs, label=name, **series_style(number) | {"markersize": 2.5})
    right.set(
        xlabel="ridge γ₀ (log scale)", ylabel="cost of identity (log scale)", xscale="log", yscale="log"
    )
    right.axvline(1e-3, color=GREY, linewidth=0.6)
    for axes in (left, right):
        axes.legend(loc="upper right")
    note_below(figure, [f"grey: left {RANK + 1} dimensions, right the default ridge 0.001"])
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Print, draw."""
    parser = argparse.ArgumentParser(description="Tables and pictures of the gauges.")
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="FOLDER")
    options = parser.parse_args(arguments)
    for table in (companion_table, width_table, odd_cases, dimension_table, rank_table, gamma_table):
        print(*table(), "", sep="\n")
    options.out.mkdir(parents=True, exist_ok=True)
    save_figure(companion_picture(), options.out / "companions.png")
    save_figure(dimension_picture(), options.out / "dimensions.png")


if __name__ == "__main__":
    main()
