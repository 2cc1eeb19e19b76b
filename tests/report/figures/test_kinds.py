"""Every kind of picture, in one column and in two: it can be read, and nothing is cut off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

from fathometer import InputError, Provenance, SimilarityMap
from fathometer.activations import AtlasSettings, activation_atlas, polynomial_scores, range_scores
from fathometer.report.figures.activations import plot_polynomials, plot_ranges
from fathometer.report.figures.kinds import KINDS, PlotOptions, default_kind, draw_soundings
from tests.report.figures.drawn import fits, network, texts, touching, transformer

EVIL = "_a$x_1$ <script>alert(1)</script>\x07 and a name that does not come to an end at all, not yet"
FEW = {EVIL: network(EVIL, 30), "b": network("b", 25, seed=1)}
MANY = {f"net{i}-{'ab'[i % 2]}": network(f"net{i}", 20 + i, seed=i) for i in range(12)}
FACTS = pd.DataFrame(
    {
        "family": ["A", "B"] * 6,
        "accuracy": np.linspace(60, 80, 12) % 7,
        "depth": np.arange(12.0) ** 1.5,
        "year": [2012 + i // 2 for i in range(12)],
    },
    index=list(MANY),
)
PATHS = {
    name: network(
        name,
        14,
        seed=seed,
        stable_rank=np.linspace(9, 2, 14),
        stable_rank_in=np.linspace(10, 3, 14),
        speed=np.linspace(1, 2, 14),
    )
    for seed, name in enumerate((EVIL, "b"))
}
TRANSFORMERS = {EVIL: transformer(EVIL, 30), "b": transformer("b", 6, seed=1, more=40)}


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_fits_its_columns(kind: str, columns: Any) -> None:
    for named in (FEW, MANY, PATHS, TRANSFORMERS):
        options = PlotOptions(columns=columns, facts=FACTS, strip=True, distribution=True)
        given = dict(list(named.items())[: KINDS[kind].max_count])
        if kind == "path" and named is not PATHS:
            continue
        if (kind in ("layers", "gauges")) != (named is TRANSFORMERS):
            continue
        if kind in ("years", "predictors") and named is not MANY:
            continue
        fits(draw_soundings(given, kind, options), columns)


@pytest.mark.parametrize("kind", ["signature", "strip", "map", "overlay", "alignment", "difference"])
def test_500_sites_stay_readable_in_one_column(kind: str) -> None:
    def path(i: int) -> str:
        return f"stage{i // 100}.block{i // 4}.act{i % 4}"

    deep = {name: network(name, 500, path=path, seed=seed) for seed, name in enumerate((EVIL, "b"))}
    given = dict(list(deep.items())[: 1 if kind in ("signature", "strip", "map") else 2])
    figure = draw_soundings(given, kind, PlotOptions(columns=1))
    fits(figure, 1)
    shown = {text.get_text() for text in texts(figure)}
    if kind in ("signature", "strip", "map", "difference"):
        assert {f"stage{i}" for i in range(5)} <= shown


@pytest.mark.parametrize("columns", [1, 2])
def test_figures_of_activations_fit(columns: Any) -> None:
    few = AtlasSettings(means=4, stds=(1.0, 0.5), samples=40, features=4)
    fits(activation_atlas(["ReLU", "Tanh", "GELU", "SiLU", "ReLU6"], few).plot(columns=columns), columns)
    fits(plot_polynomials(polynomial_scores([1, 3, 5, 11]), columns=columns), columns)
    fits(plot_ranges(range_scores(["ReLU", "Sigmoid"]), columns=columns), columns)


def test_one_is_shown_along_depth_few_over_each_other_many_by_distance() -> None:
    assert default_kind({"a": MANY["net0-a"]}) == "signature"
    assert default_kind(FEW) == "overlay"
    assert default_kind(MANY) == "distances"
    assert default_kind(PATHS) == "path"
    assert default_kind(TRANSFORMERS) == "layers"


@pytest.mark.parametrize(
    ("kind", "count", "words"),
    [
        ("signature", 2, "signature: expected one sounding, got 2, which can be shown as strip"),
        ("alignment", 1, "alignment: expected two, got 1, which can be shown as signature, strip"),
        ("difference", 3, "difference: expected two, got 3"),
        ("distances", 1, "distances: expected at least 2, got 1"),
        ("predictors", 3, "predictors: expected the accuracy of networks, got none; give a CSV"),
        ("years", 2, "got none for net0-a, net1-b; give a CSV"),
        ("map", 2, "map: expected one sounding, got 2"),
        ("pie", 1, "kind: expected one of signature, strip"),
        ("path", 1, "expected what residual_path returns"),
        ("layers", 2, r"expected sites with layers, got none; .* on the command line --sites"),
        ("gauges", 2, "gauges: expected one sounding, got 2"),
    ],
)
def test_what_cannot_be_drawn_says_why(kind: str, count: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        draw_soundings(dict(list(MANY.items())[:count]), kind, PlotOptions())


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 150), (19, 55), (150, 4)])
def test_a_map_of_two_networks_fits_whatever_its_shape(rows: int, columns: int) -> None:
    one, other = network(EVIL, rows), network("b", columns)
    values = np.random.default_rng(0).uniform(-0.1, 1, (rows, columns))
    values[0, -1] = np.nan
    names = [[site.name for site in each.sites] for each in (one, other)]
    facts = Provenance(model={"first": {"name": EVIL}, "second": {"name": "b"}})
    found = SimilarityMap(one.sites, other.sites, pd.DataFrame(values, names[0], names[1]), facts)
    widths: tuple[Literal[1, 2], ...] = (1, 2)
    for width in widths:
        figure = found.plot(columns=width)
        fits(figure, width)
        words = " ".join(text.get_text() for text in texts(figure))
        assert "nan" not in words.split()
        assert "value: the sites do not vary" in " ".join(words.split())
        left = [label for label in figure.axes[0].get_yticklabels() if label.get_text()]
        assert not touching(left)


def test_a_sounding_without_a_map_says_how_to_get_one() -> None:
    with pytest.raises(InputError, match=r'got one without; measure\(..., map="cka"\)'):
        replace(FEW["b"], map=None).plot_map()
