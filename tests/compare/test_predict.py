from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import linregress, pearsonr
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from fathometer import InputError
from fathometer.cli.compare_networks import mean_and_std
from fathometer.compare import (
    best_predictors,
    correlations,
    families_by_pattern,
    family_table,
    predictors,
    statistics,
)
from papers.affinity.printed_tables import ROUNDING, table_1, table_2, table_2_families
from tests.compare.soundings import sounding

RNG = np.random.default_rng(4)


def test_pearson_over_sites_of_the_means_over_batches() -> None:
    a, b = RNG.random((9, 3)), RNG.random((9, 3))
    found: Any = correlations([sounding("net", a, cka=b, norm=-a)])
    assert found.columns.to_list() == ["cka", "norm"]
    assert found.loc["net", "cka"] == pytest.approx(pearsonr(a.mean(1), b.mean(1))[0], abs=1e-14)
    assert found.loc["net", "norm"] == pytest.approx(-1, abs=1e-15)


def test_undefined_correlations_are_nan() -> None:
    a = RNG.random(6)
    some = [
        sounding("flat", a, cka=np.full(6, 0.1) + 1e-17 * a),
        sounding("holed", a, cka=np.where(np.arange(6) < 4, np.nan, a)),
        sounding("without", a),
        sounding("two", a[:2], cka=a[:2]),
        sounding("most", a, cka=np.where(np.arange(6) < 1, np.inf, 2 * a)),
    ]
    found: Any = correlations(some)["cka"]
    assert found.isna().to_list() == [True, True, True, True, False]
    assert found["most"] == pytest.approx(1)


def test_companions_are_checked() -> None:
    with pytest.raises(InputError, match="none of the paper"):
        correlations([sounding("bare", [1, 2, 3])])
    with pytest.raises(InputError, match="typo was measured in no network, but affinity, cka"):
        correlations([sounding("a", [1, 2], cka=[1, 2])], companions=["typo"])


def test_table_1_follows_from_table_2_for_most_families() -> None:
    ours: Any = family_table(table_2(), table_2_families(), overall="Average")
    rows = ["VGGs", "ResNets", "ViTs", "Swins", "Convnexts"]
    difference = ours.loc[rows, table_1().columns] - table_1().loc[rows]
    assert difference.abs().to_numpy().max() <= ROUNDING + 1e-9


def test_means_of_families_by_hand() -> None:
    values: Any = pd.DataFrame({"x": [1.0, 3.0, np.nan, 5.0]}, index=["a1", "a2", "a3", "b1"])
    found: Any = family_table(values, {"a1": "A", "a2": "A", "a3": "A", "b1": "B", "absent": "C"})
    assert found["x"].to_dict("index") == {
        "A": {"mean": 2, "std": 1, "count": 2},
        "B": {"mean": 5, "std": 0, "count": 1},
        "all": {"mean": 3, "std": pytest.approx(math.sqrt(8 / 3)), "count": 3},
    }
    assert mean_and_std(found)["x"].to_list() == ["2.00 ± 1.00", "5.00", "3.00 ± 1.63"]
    with pytest.raises(InputError, match="name of the row over all"):
        family_table(values, {"a1": "all"})
    with pytest.raises(InputError, match=r"family VGG: no network matches 'vgg\*'; there are a, b"):
        families_by_pattern(["a", "b"], {"VGG": ["a", "vgg*"]})
    several = families_by_pattern(["b1", "a1", "c1", "d"], {"R": ["a*", "b*"], "S": "?1"})
    assert several == {"b1": "R", "a1": "R", "c1": "S"}


def family_of(count: int) -> tuple[Any, Any, dict[str, str]]:
    names = [f"net{i}" for i in range(count)]
    numbers = statistics({name: sounding(name, RNG.random(12)) for name in names})
    facts = pd.DataFrame(RNG.random((count, 3)), index=names, columns=["accuracy", "depth", "gflops"])
    return numbers, facts, dict.fromkeys(names, "F")


def test_fits_match_scipy_and_left_out_fits_match_scikit_learn() -> None:
    numbers, facts, families = family_of(6)
    found: Any = predictors(numbers, facts, families).set_index("predictor")
    names = ["min", "max", "mean", "median", "std", "spread", "skewness", "depth", "gflops"]
    assert sorted(found.index) == sorted(names)
    y = facts["accuracy"].to_numpy()
    for name, kind, source in (("median", "signature", numbers), ("depth", "characteristic", facts)):
        x = source[name].to_numpy()
        line = linregress(x, y)
        assert found.loc[name, "kind"] == kind
        assert found.loc[name, "r2"] == pytest.approx(line.rvalue**2, abs=1e-12)
        assert found.loc[name, "slope"] == pytest.approx(line.slope, rel=1e-10)
        guessed = cross_val_predict(LinearRegression(), x[:, None], y, cv=LeaveOneOut())
        means = np.array([np.delete(y, i).mean() for i in range(len(y))])
        expected = 1 - ((y - guessed) ** 2).sum() / ((y - means) ** 2).sum()
        assert found.loc[name, "r2_left_out"] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("gap", [False, True])
def test_p_matches_all_permutations(gap: bool) -> None:
    numbers, facts, families = family_of(4)
    if gap:
        facts.loc["net1", "gflops"] = np.nan
    best: Any = best_predictors(numbers, facts, families).set_index("kind")
    lines: Any = predictors(numbers, facts, families)
    signature = ["min", "max", "mean", "median", "std", "spread", "skewness"]
    for kind, columns in (("signature", numbers[signature]), ("characteristic", facts[["depth", "gflops"]])):
        row = best.loc[kind]
        assert row["r2"] == lines.loc[lines["kind"] == kind, "r2"].max()
        reached = []
        for y in map(np.array, permutations(facts["accuracy"])):
            known = [np.isfinite(x) for x in columns.to_numpy().T]
            pairs = zip(columns.to_numpy().T, known, strict=True)
            reached.append(max(pearsonr(x[there], y[there])[0] ** 2 for x, there in pairs))
        assert row["p"] == pytest.approx(np.mean(np.array(reached) >= row["r2"] - 1e-9))
        assert row["p"] >= 1 / 24


def test_a_true_predictor_is_found_among_many_members() -> None:
    numbers, facts, families = family_of(10)
    facts["accuracy"] = 70 - 5 * numbers["min"] + 0.01 * RNG.random(10)
    best: Any = best_predictors(numbers, facts, families).set_index("kind").loc["signature"]
    assert best["predictor"] == "min"
    assert best["slope"] == pytest.approx(-5, rel=0.05)
    assert best["r2_left_out"] > 0.99
    assert best["p"] < 0.01


def test_small_families_unknown_accuracies_and_constants() -> None:
    numbers, facts, families = family_of(5)
    facts.loc["net0", "accuracy"] = np.nan
    facts["depth"] = 7.0
    facts["gflops"] = [1, np.nan, 3, 4, 5]
    found: Any = predictors(numbers, facts, families).set_index("predictor")
    assert found["members"].drop("gflops").unique().tolist() == [4]
    assert found.loc["depth", "r2"] == 0
    assert math.isnan(found.loc["depth", "r2_left_out"])
    assert found.loc["gflops", "members"] == 3  # the line goes through those that have it
    have = facts[facts.notna().all(axis=1)]
    assert found.loc["gflops", "r2"] == pytest.approx(pearsonr(have["gflops"], have["accuracy"])[0] ** 2)
    facts.loc["net4", "gflops"] = np.nan
    found = predictors(numbers, facts, families).set_index("predictor")
    assert found.loc["gflops", "members"] == 2  # too few: named, without a line
    assert math.isnan(found.loc["gflops", "r2"])
    best: Any = best_predictors(numbers, facts, families).set_index("kind")
    assert best.loc["characteristic", "predictor"] == "depth"
    assert best.loc["characteristic", "p"] == 1
    with pytest.raises(InputError, match="at least 3 members"):
        predictors(numbers.iloc[:2], facts, families)
    with pytest.raises(InputError, match="expected a column 'accuracy', got depth"):
        predictors(numbers, facts[["depth"]], families)
