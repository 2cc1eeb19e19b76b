from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats

from fathometer.errors import InputError
from fathometer.leaky import LeakySweep, grid, own_task
from fathometer.leaky.schemes import (
    check_alike,
    held_out_errors,
    paired_differences,
    project_paths,
    seed_differences,
)
from fathometer.report import (
    default_run,
    depth_table,
    leaky_figures,
    plot_bounded,
    plot_dimensions,
    plot_energies,
    plot_errors,
    plot_plane,
    plot_spectra,
    plot_steps,
)
from fathometer.report.figures.kinds import LEAKY_KINDS, OF_ONE_RUN, PAPER_FIGURES, default_leaky_kind
from tests.leaky.networks import SMALL, measured_sweep
from tests.report.figures.drawn import fits

DEPTHS = [1.0, 3.0, 5.0]
SCHEMES = ("equidistant", "irregular", "adaptive")
LAYERS = [4, 6]
SEEDS = 3


@pytest.fixture(scope="module")
def depths() -> LeakySweep:
    return measured_sweep(grid(SMALL, effective_depth=DEPTHS, seeds=2))


@pytest.fixture(scope="module")
def schemes() -> LeakySweep:
    return measured_sweep(grid(SMALL, scheme=SCHEMES, layers=LAYERS, seeds=SEEDS))


def lines(axes: Any) -> dict[str, Any]:
    """Lines by label, less the unnamed."""
    return {
        line.get_label(): np.asarray(line.get_xydata())
        for line in axes.get_lines()
        if not line.get_label().startswith("_")
    }


def offsets(axes: Any) -> list[Any]:
    """The points of every scatter of two points or more."""
    return [np.asarray(c.get_offsets(), float) for c in axes.collections if len(c.get_offsets()) > 1]


def segments(bars: Any) -> Any:
    """Low and high of every bar."""
    return np.array([segment[:, 1] for segment in bars.get_segments()], float)


def legend(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_figure_1a_shows_the_summaries_by_depth(depths: LeakySweep) -> None:
    figure = plot_dimensions(depths)
    (axes,) = figure.axes
    *found, rank = lines(axes).values()
    table, names = depths.table, ["cost_of_identity", "stable_rank", "hamiltonian_stable", "hamiltonian"]
    groups = table.groupby("effective_depth")
    for line, points, name in zip(found, offsets(axes), names, strict=True):
        assert_allclose(line, np.c_[DEPTHS, groups[name].median()])
        assert_allclose(points, table[["effective_depth", name]])
    assert rank[0, 1] == 2
    bars = [segments(c) for c in axes.collections if hasattr(c, "get_segments")]
    for ends, name in zip(bars, names[2:], strict=False):
        assert_allclose(ends, np.c_[groups[f"{name}_min"].min(), groups[f"{name}_max"].max()])
    assert_allclose(bars[2], [[5, 5]])  # where the scale changes, as the label says
    assert axes.get_ylabel() == "dimensions\n(linear up to 5, then logarithmic)"
    assert any("not at a critical point" in text for text in legend(figure))
    low, high = axes.get_ylim()
    assert low < table["hamiltonian_min"].min()
    assert high > table["cost_of_identity"].max()


def test_figure_3_shows_lengths_and_momenta(depths: LeakySweep) -> None:
    table = depth_table(depths)
    columns = ["length_per_root_n", "length_kernel", "momentum", "momentum_sigma"]
    for axes, name in zip(plot_bounded(depths).axes, columns, strict=True):
        (line,) = lines(axes).values()
        assert_allclose(line, np.c_[DEPTHS, table.groupby("effective_depth")[name].median()])
    points, first = depths.runs[0].measures.points, table.iloc[0]
    assert first["momentum_sigma"] == points["momentum_sigma"].median()
    assert first["momentum_max"] == points["momentum_norm"].max()


def test_figure_1b_has_a_line_for_each_singular_value(depths: LeakySweep) -> None:
    run = default_run(depths)
    assert (run.design.effective_depth, run.design.seed) == (5.0, 0)
    left, right = plot_spectra(depths).axes
    measures = run.measures
    assert measures.weight_spectra is not None
    for axes, p, spectra in (
        (left, measures.points["p"], measures.spectra),
        (right, measures.layers["p"], measures.weight_spectra),
    ):
        found = lines(axes)
        assert len(found) == spectra.shape[1] == SMALL.width
        for number, values in enumerate(spectra.T):
            assert_allclose(found[f"$s_{{{number + 1}}}$"], np.c_[p, values])
    dotted = [line for line in right.get_lines() if line.get_linestyle() == ":"]
    assert [np.asarray(line.get_ydata())[0] for line in dotted] == [5.0]


def test_figure_1c_shows_the_energies(depths: LeakySweep) -> None:
    run = depths.runs[2]
    (axes,) = plot_energies(run).axes
    *found, rank = lines(axes).values()
    for line, name in zip(found, ["potential", "kinetic", "hamiltonian", "hamiltonian_stable"], strict=True):
        assert_allclose(line, run.measures.layers[["p", name]])
    assert rank[0, 1] == 2


def test_paired_differences_are_those_of_a_paired_t_test(schemes: LeakySweep) -> None:
    table = paired_differences(schemes)
    assert table.columns.to_list() == ["layers", "scheme", "mean", "low", "high", "wins", "seeds"]
    assert table[["layers", "scheme"]].to_numpy().tolist() == [
        [layers, scheme] for layers in LAYERS for scheme in ("adaptive", "irregular")
    ]
    for row in table.to_dict("records"):
        one, base = (
            np.array([run.test_error for run in schemes.only(layers=row["layers"], scheme=scheme).runs])
            for scheme in (row["scheme"], "equidistant")
        )
        interval = stats.ttest_rel(one, base).confidence_interval(0.95)
        assert row["mean"] == pytest.approx((one - base).mean())
        assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
        assert (row["wins"], row["seeds"]) == ((one < base).sum(), SEEDS)


def test_paired_differences_leave_out_seeds_without_a_partner(schemes: LeakySweep) -> None:
    first = replace(schemes.runs[0], diverged=3)  # equidistant, L = 4, seed 0
    table = paired_differences(replace(schemes, runs=(first, *schemes.runs[1:]))).set_index("layers")
    assert set(table.loc[[4], "seeds"]) == {SEEDS - 1}
    assert set(table.loc[[6], "seeds"]) == {SEEDS}
    single = paired_differences(schemes.only(seed=1))
    assert single["seeds"].eq(1).all()
    assert single["low"].isna().all()
    assert single["mean"].notna().all()


def test_paired_differences_refuse_what_cannot_be_paired(schemes: LeakySweep, depths: LeakySweep) -> None:
    def part(*runs: Any) -> LeakySweep:
        return replace(schemes, runs=runs)

    with pytest.raises(InputError, match="expected equidistant steps and some other, got equidistant"):
        paired_differences(depths)
    with pytest.raises(
        InputError, match=r"only in layers, scheme, seed, got several values of effective_depth"
    ):
        paired_differences(part(*schemes.runs, *depths.runs))
    with pytest.raises(InputError, match="several with L = 4, equidistant, seed 0"):
        held_out_errors(part(*schemes.runs, schemes.runs[0]))
    apart = [*schemes.only(scheme="equidistant", seed=0).runs, *schemes.only(scheme="adaptive", seed=1).runs]
    with pytest.raises(InputError, match="got no such pair"):
        seed_differences(part(*apart))
    own = own_task(torch.randn(6, 5), torch.randn(6, 4))
    with pytest.raises(InputError, match="held-out data"):
        held_out_errors(part(replace(schemes.runs[0], task=own)))
    check_alike([])


def test_figure_2a_shows_means_and_pairs(schemes: LeakySweep) -> None:
    figure: Any = plot_errors(schemes)
    left, right = figure.axes
    errors = held_out_errors(schemes).groupby(["scheme", "layers"])["test_error"]
    found = lines(left)
    assert list(found) == list(SCHEMES) == legend(figure)
    for scheme, line in found.items():
        assert_allclose(line[:, 1], errors.mean()[scheme])
    pairs = paired_differences(schemes)
    means = {c.get_label(): c for c in right.containers}
    assert list(means) == ["irregular", "adaptive"]
    for scheme, bar in means.items():
        rows = pairs[pairs["scheme"] == scheme]
        assert_allclose(bar.lines[0].get_ydata(orig=False), rows["mean"])
        assert_allclose(segments(bar.lines[2][0]), rows[["low", "high"]])
    dots = np.concatenate(offsets(right))[:, 1]
    assert_allclose(np.sort(dots), np.sort(seed_differences(schemes)["difference"]))


def test_figure_2b_has_a_line_at_each_step(schemes: LeakySweep) -> None:
    (axes,) = plot_steps(schemes).axes
    run = schemes.only(scheme="adaptive", layers=6, seed=0).runs[0]
    steps = [np.asarray(line.get_xdata())[0] for line in axes.get_lines() if line.get_gid() == "step"]
    assert_allclose(steps, run.path.places)
    assert run.measures.weight_spectra is not None
    assert_allclose(lines(axes)["$s_{1}$"][:, 1], run.measures.weight_spectra[:, 0])


def test_figure_2c_is_a_joint_pca(schemes: LeakySweep) -> None:
    (axes,) = plot_plane(schemes).axes
    runs = [schemes.only(scheme=scheme, layers=6, seed=0).runs[0] for scheme in SCHEMES]
    flat = np.concatenate([run.path.representations.flatten(1).numpy() for run in runs])
    centred = flat - flat.mean(0)
    gram = np.linalg.eigvalsh(centred @ centred.T)[::-1]
    begin, end, *_ = lines(axes).values()
    found = {name: line for name, line in lines(axes).items() if name in SCHEMES}
    assert list(found) == list(SCHEMES)
    assert_allclose(begin, [path[0] for path in found.values()])
    assert_allclose(end, [path[-1] for path in found.values()])
    assert all(len(path) == 7 for path in found.values())
    points = np.concatenate(list(found.values()))
    assert_allclose(points.T @ points, np.diag(gram[:2]), atol=1e-9 * gram[0])
    assert f"{gram[0] / gram.sum():.0%}" in axes.get_xlabel()


def test_every_figure_is_drawn_or_says_why_not(depths: LeakySweep, schemes: LeakySweep) -> None:
    figures, reasons = leaky_figures(depths)
    assert list(figures) == ["1a", "1b", "1c", "3", "affinity"]
    assert list(reasons) == ["2a", "2b", "2c"]
    assert "adaptive" in reasons["2b"]
    others, why = leaky_figures(schemes)
    assert set(others) == {"1b", "1c", "2a", "2b", "2c", "affinity"}
    assert why["1a"] == why["3"]
    assert "above 0, got L̃ = 3" in why["3"]
    assert set(PAPER_FIGURES) == {*figures, *reasons} == {*others, *why}


def test_mixed_and_diverged_sweeps_are_refused(depths: LeakySweep, schemes: LeakySweep) -> None:
    with pytest.raises(InputError, match=r"several values of layers, scheme; keep one"):
        plot_dimensions(replace(depths, runs=(*depths.runs, *schemes.runs)))
    lost = replace(depths, runs=tuple(replace(run, diverged=4) for run in depths.runs))
    figures, reasons = leaky_figures(lost)
    assert not figures
    assert set(reasons) == set(PAPER_FIGURES)
    assert "did not diverge" in reasons["1b"]


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("kind", list(LEAKY_KINDS))
def test_every_picture_fits_its_columns(
    kind: str, columns: Any, depths: LeakySweep, schemes: LeakySweep
) -> None:
    several = schemes if kind.startswith("2") else depths
    fits(several.plot(kind, columns=columns), columns)
    if kind in OF_ONE_RUN:
        fits(several.runs[0].plot(kind, columns=columns), columns)


def test_training_curves_are_the_history(depths: LeakySweep) -> None:
    run = depths.runs[0]
    top, bottom = run.plot("training").axes
    error, decay = (np.asarray(line.get_xydata()) for line in top.get_lines())
    assert_allclose(error, run.history[["epoch", "error"]])
    assert_allclose(decay, run.history[["epoch", "decay"]])
    crit, bound = (np.asarray(line.get_xydata()) for line in bottom.get_lines())
    assert_allclose(crit, run.history[["epoch", "crit"]])
    assert_allclose(bound[:, 1], 0.1)
    assert len(depths.plot("training").axes[0].get_lines()) == 2 * len(depths.runs)
    with pytest.raises(InputError, match="expected a history of some epochs, got none"):
        replace(run, history=run.history.iloc[:0]).plot("training")


def test_what_a_sweep_shows_first_and_what_a_run_cannot(depths: LeakySweep, schemes: LeakySweep) -> None:
    assert default_leaky_kind(depths) == "1a"
    assert default_leaky_kind(schemes) == "2a"
    assert default_leaky_kind(replace(depths, runs=depths.runs[:1])) == "1c"
    (dots,) = depths.runs[0].plot("projection").axes[0].collections
    assert_allclose(np.asarray(dots.get_offsets()), project_paths([depths.runs[0]]).paths[0])
    plain = replace(depths.runs[0], design=replace(SMALL, effective_depth=0.0))
    assert default_leaky_kind(replace(depths, runs=(plain,))) == "1b"
    assert lines(depths.plot().axes[0]).keys() == lines(plot_dimensions(depths).axes[0]).keys()
    with pytest.raises(InputError, match=r"3 compares .* one run, which can show 1b, 1c"):
        depths.runs[0].plot("3")
    with pytest.raises(
        InputError, match=r"expected one of 1a, 1b, .*, ranks, training, projection, got 'pie'"
    ):
        depths.plot("pie")
