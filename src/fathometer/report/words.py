"""What stands out in a result, in sentences: a sounding, a training, Leaky ResNets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from fathometer.compare.soundings import Array
from fathometer.leaky import LeakyRun
from fathometer.leaky.measures import CRITICAL
from fathometer.leaky.theory import Statement
from fathometer.report.leaky_tables import bottleneck_stretches
from fathometer.report.numbers import in_words, number
from fathometer.report.tables import clear_modes
from fathometer.results.history import History
from fathometer.results.sounding import Sounding

_CLEAR_GAP = 2.0  # below, no bottleneck stands out
_MAX_LISTED = 4  # names in a sentence


def what_stands_out(sounding: Sounding, gauge: str = "affinity", *, groups: bool = True) -> str:
    """Describe a sounding: its highest and lowest site, median and spread, whether it has two groups.

    Sites without a finite value are counted, and otherwise left out. `groups=False` leaves out the two
    groups, which need a simulation for every number of sites.
    """
    values = sounding.mean(gauge)
    finite = values[np.isfinite(values.to_numpy(float))]
    name = in_words(gauge)
    if not len(finite):
        return f"{name.capitalize()} has no value at any site."
    missing = len(values) - len(finite)
    gap = f" {missing} of {len(values)} sites have no value." if missing else ""
    low, high = finite.idxmin(), finite.idxmax()
    bottom, top = number(finite.min()), number(finite.max())
    if len(finite) == 1:
        return f"One site, {low}: {name} {top}.{gap}"
    if gauge.startswith("affinity"):
        first = (
            f"The most linear of {len(finite)} sites is {high} ({top}), the most non-linear {low} ({bottom})."
        )
    else:
        first = (
            f"{name.capitalize()} is highest at {high} ({top}) and lowest at {low} ({bottom}), "
            f"of {len(finite)} sites."
        )
    spread = number(float(finite.max() - finite.min()))
    second = f" The median is {number(float(finite.median()))}, the spread {spread}."
    return first + second + (_groups(np.asarray(finite, np.float64)) if groups else "") + gap


def _groups(values: Array) -> str:
    modes = clear_modes(values)
    if modes is None:
        return ""
    return (
        f" The values form two groups, around {number(modes.low)} and {number(modes.high)} "
        f"({modes.share:.0%} in the upper one)."
    )


def history_words(history: History, gauge: str = "affinity") -> str:
    """Describe a training: which site changed most and which least, and how the median changed."""
    first, last = history.steps[0], history.steps[-1]
    name = in_words(gauge)
    if len(history.steps) == 1:
        return f"One sounding, of step {first}: nothing has changed yet."
    table = history.change(gauge)
    known = table[np.isfinite(table.to_numpy(float)).all(axis=1)]
    missing = len(table) - len(known)
    gap = f" {missing} of {len(table)} sites have no value at the first or the last step." if missing else ""
    if not len(known):
        return f"{name.capitalize()} has no value at both the first and the last step.{gap}"
    order = known["change"].abs().to_numpy(float).argsort()
    least, most = (_change(known.iloc[int(place)]) for place in (order[0], order[-1]))
    before, after = number(float(known["first"].median())), number(float(known["last"].median()))
    rising = int((known["change"] > 0).sum())
    also = f", and least at {least}" if len(known) > 1 else ""
    return (
        f"From step {first} to {last} the {name} changes most at {most}{also}. The median over sites goes "
        f"from {before} to {after}; it rises at {rising} of {len(known)} sites.{gap}"
    )


def _change(row: pd.Series[float]) -> str:
    return f"{row.name}, from {number(row['first'])} to {number(row['last'])}"


def cost_words(history: History) -> str:
    """Say how long measuring took, and which soundings failed."""
    text = f"Measuring took {history.cost}." if history.cost.total else ""
    count = len(history.missed)
    if count:
        listed = "; ".join(f"step {step}: {reason}" for step, reason in history.missed[:3])
        more = f"; and {count - 3} more" if count > 3 else ""
        failed = "1 sounding failed" if count == 1 else f"{count} soundings failed"
        text = f"{text} {failed} ({listed}{more}).".strip()
    return text


def name_of(run: LeakyRun) -> str:
    """Name a network by L̃, k* where it is known, and seed."""
    rank = "" if run.task.rank is None else f", k* = {run.task.rank}"
    return f"L̃ = {run.design.effective_depth:g}{rank}, seed {run.design.seed}"


def run_words(run: LeakyRun, statements: Sequence[Statement] = ()) -> str:
    """Describe a Leaky ResNet: rank and place of the bottleneck, the Hamiltonian, which statements hold."""
    diverged = "" if run.diverged is None else f"It diverged at epoch {run.diverged}; this is its last state."
    parts = [diverged, _rank(run), _place(run), _hamiltonian(run), _theory(statements)]
    return " ".join(part for part in parts if part)


def sweep_words(table: pd.DataFrame, statements: Sequence[Sequence[Statement]] = ()) -> str:
    """Describe a sweep (`LeakySweep.table`): how many networks have the rank of their task, or diverged."""
    count, good = len(table), table[~table["diverged"]]
    parts = []
    if len(good) < count:
        parts.append(f"{count - len(good)} of {count} networks diverged; the charts leave them out.")
    known = good[good["rank"].notna()]
    given = known[known["rank_of_task"].notna()]
    if len(given):
        right = int((given["rank"] == given["rank_of_task"]).sum())
        parts.append(f"{right} of {len(given)} networks have the bottleneck rank of their task.")
    elif len(known):
        ranks = Counter(int(rank) for rank in known["rank"])
        listed = ", ".join(f"{rank} ({times})" for rank, times in sorted(ranks.items()))
        parts.append(f"Bottleneck ranks, and how often: {listed}.")
    if good["effective_depth"].nunique() > 1:
        parts.append(_with_depth(good))
    loose = int((good["crit"] > CRITICAL).sum())
    if loose:
        parts.append(
            f"{loose} of {len(good)} are not at a critical point (crit above {CRITICAL:g}), so that their "
            "Hamiltonian means little; they are hollow in the charts."
        )
    checked = [statement for each in statements for statement in each]
    if checked:
        failed = Counter(statement.name for statement in checked if not statement.holds)
        often = ", ".join(f"{name} ({times})" for name, times in failed.most_common(_MAX_LISTED))
        ending = f"; those that fail most often: {often}." if failed else "."
        parts.append(f"{len(checked) - failed.total()} of {len(checked)} statements checked hold{ending}")
    return " ".join(parts)


def _rank(run: LeakyRun) -> str:
    found, known = run.measure(warn=False).summary, run.task.rank
    if math.isnan(found["rank"]):
        return "A plain ResNet, L̃ = 0, has no Hamiltonian, and no L̃/2 from which to count a bottleneck rank."
    rank, gap, layer = int(found["rank"]), found["gap"], int(found["rank_layer"])
    task = "" if known is None else ", as the task has" if rank == known else f", where the task has {known}"
    if rank == 0:
        return f"No singular value of W is above L̃/2 in layer {layer}: rank 0{task}."
    left = "nothing is left after them" if math.isinf(gap) else f"the next is {gap:.3g} times smaller"
    unclear = " So no bottleneck stands out." if gap < _CLEAR_GAP or rank == run.design.width else ""
    values = "value of W is" if rank == 1 else "values of W are"
    return (
        f"The bottleneck rank is {rank}{task}: {rank} singular {values} above L̃/2 in layer {layer} of "
        f"{run.design.layers}, and {left}.{unclear}"
    )


def _place(run: LeakyRun) -> str:
    measures = run.measure(warn=False)
    points = measures.points
    lowest = points.iloc[int(points["cost_of_identity"].argmin())]
    where = " and ".join(f"from p = {begin:.2f} to {end:.2f}" for begin, end in bottleneck_stretches(points))
    text = (
        f"The cost of identity is lowest at p = {lowest['p']:.2f} ({lowest['cost_of_identity']:.2f}), and "
        f"within half a dimension of that {where}"
    )
    highest = measures.summary["affinity"]
    if math.isnan(highest):
        return f"{text}."
    name, share = "ReLU" if run.design.sigma == "relu" else run.design.sigma, points["negative"].min()
    return f"{text}; there the affinity score of {name} reaches {highest:.3f}, and ‖A₋‖/‖A‖ {share:.2g}."


def _hamiltonian(run: LeakyRun) -> str:
    measures = run.measure(warn=False)
    averaged = measures.layers["hamiltonian_averaged"]
    if averaged.isna().all():
        return ""
    crit = measures.summary["crit"]
    state, worth = ("are", "") if crit <= CRITICAL else ("are not", ", so it means little")
    return (
        f"−2H/L̃ is {measures.summary['hamiltonian']:.2f}, the median over layers. Averaged over both ends of "
        f"a layer it has a standard deviation of {averaged.std(ddof=0):.2g} along p, where the cost of "
        f"identity has one of {measures.points['cost_of_identity'].std(ddof=0):.3g}; the weights {state} at "
        f"a critical point (crit {crit:.2g}){worth}."
    )


def _theory(statements: Sequence[Statement]) -> str:
    if not statements:
        return ""
    failed = [statement.name for statement in statements if not statement.holds]
    more = f" and {len(failed) - _MAX_LISTED} more" if len(failed) > _MAX_LISTED else ""
    ending = f"; not: {', '.join(failed[:_MAX_LISTED])}{more}." if failed else "."
    return f"{len(statements) - len(failed)} of {len(statements)} statements of the paper hold{ending}"


def _with_depth(table: pd.DataFrame) -> str:
    """Say how the medians change from the smallest depth to the largest."""
    depth = table["effective_depth"]
    shallow, deep = table[depth == depth.min()], table[depth == depth.max()]
    cost, energy = (
        [part[name].median() for part in (shallow, deep)] for name in ("cost_of_identity", "hamiltonian")
    )
    also = "" if any(map(math.isnan, energy)) else f", −2H/L̃ from {energy[0]:.3g} to {energy[1]:.3g}"
    return (
        f"From L̃ = {depth.min():g} to {depth.max():g} the lowest cost of identity goes from {cost[0]:.3g} to "
        f"{cost[1]:.3g}{also} (medians)."
    )
