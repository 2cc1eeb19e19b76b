"""Figure 2a: test error against L for equidistant, irregular and adaptive steps."""

from __future__ import annotations

import pandas as pd

from fathometer.leaky import BASELINE, held_out_errors, paired_differences, seed_differences
from fathometer.report import plot_errors
from papers.intervals import Interval, bootstrap_interval, mean_interval
from papers.item import Answer, Answers, Claim, RunContext, Seconds
from papers.leaky.networks import scheme_item, scheme_networks


def run(context: RunContext) -> Answers:
    """Compare schemes within seeds, which share the task and the initial weights."""
    sweep = scheme_networks(context)
    errors = context.table("errors", held_out_errors(sweep))
    pairs = context.table("differences", paired_differences(sweep))
    context.figure(plot_errors(sweep))
    differences = seed_differences(sweep)
    usual = errors.loc[errors["scheme"] == BASELINE, "test_error"].mean()
    return {
        "adaptive": advantage(differences, "adaptive", usual),
        "irregular": advantage(differences, "irregular", usual),
        "consistent": consistent(pairs),
        "layers": more_layers(errors),
    }


def advantage(differences: pd.DataFrame, scheme: str, usual: float) -> Answer:
    """Average `difference` over all L, with an interval from whole seeds."""
    rows = differences[differences["scheme"] == scheme]
    found = bootstrap_interval([group["difference"].to_list() for _, group in rows.groupby("seed")])
    return Answer(
        found.high < 0,
        f"{found} over {found.number} seeds, {found.mean / usual:+.1%} of the error of {BASELINE} steps",
        {"mean": found.mean, "low": found.low, "high": found.high, "share": found.mean / usual},
    )


def consistent(pairs: pd.DataFrame) -> Answer:
    """Check that every interval of every scheme is below 0."""
    good = pairs["high"] < 0
    words = []
    for scheme, rows in pairs.groupby("scheme"):
        means, lows, highs = (rows[name] for name in ("mean", "low", "high"))
        each = zip(rows["layers"], means, lows, highs, strict=True)
        listed = ", ".join(f"{m:.4f} ({low:.4f} to {high:.4f}) at L = {n}" for n, m, low, high in each)
        words.append(f"{scheme}: {listed}")
    return Answer(bool(good.all()), "; ".join(words), {"below": float(good.sum()), "intervals": len(pairs)})


def more_layers(errors: pd.DataFrame) -> Answer:
    """Compare the error with the most layers and with the fewest, within seeds, for each scheme."""
    fewest, most = errors["layers"].min(), errors["layers"].max()
    table = errors.pivot_table(index=["scheme", "seed"], columns="layers", values="test_error")
    change = (table[most] - table[fewest]).dropna()
    found: dict[str, Interval] = {
        str(scheme): mean_interval(values) for scheme, values in change.groupby("scheme")
    }
    return Answer(
        all(interval.high < 0 for interval in found.values()),
        f"L = {most} less L = {fewest}: " + ", ".join(f"{name} {each}" for name, each in found.items()),
        {name: interval.mean for name, interval in found.items()},
    )


FIGURE_2A = scheme_item(
    name="leaky-figure-2a",
    title="Figure 2a: test error against L for three kinds of steps",
    claims={
        "adaptive": Claim(
            "There is a small advantage in the test error when using adaptive ρ.",
            "Test error less that of equidistant steps with the same L and seed, mean over all L: its 95 % "
            "interval (bootstrap of whole seeds) is below 0.",
        ),
        "irregular": Claim("The same when using irregular ρ (a = .5).", "The same test."),
        "consistent": Claim(
            "These advantages are consistent.",
            "At every L the 95 % interval of the mean difference (Student, paired by seed) is below 0, for "
            "adaptive and for irregular steps.",
        ),
        "layers": Claim(
            "Larger L lead to improved test performance (appendix B).",
            "For each of the three schemes: the error with the most layers less that with the fewest, paired "
            "by seed, has a 95 % interval below 0.",
        ),
    },
    run=run,
    seconds=Seconds(2, 160, 130),
)
