"""What stands out in a trained Leaky ResNet, and in a sweep of them, in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from fathometer.leaky import LeakyRun
from fathometer.leaky.measures import CRITICAL
from fathometer.leaky.theory import Statement
from fathometer.report.leaky_tables import bottleneck_stretches

_CLEAR = 2.0  # a gap below is none
_FEW = 4  # so many names still read well


def run_words(run: LeakyRun, statements: Sequence[Statement] = ()) -> str:
    """The rank and place of the bottleneck, how constant the Hamiltonian is, which statements hold."""
    parts = [_fate(run), _rank(run), _place(run), _hamiltonian(run), _theory(statements)]
    return " ".join(part for part in parts if part)


def sweep_words(table: pd.DataFrame, statements: Sequence[Sequence[Statement]] = ()) -> str:
    """How many networks have the rank of their task, are critical, diverged; how many statements hold.

    Args:
        table: a row for each network, as `LeakySweep.table` has it.
        statements: of each network, where they were checked.
    """
    count, good = len(table), table[~table["diverged"]]
    parts = []
    if len(good) < count:
        parts.append(f"{count - len(good)} of {count} networks diverged; they are left out of the charts.")
    known = good[good["rank"].notna()]
    told = known[known["rank_of_task"].notna()]
    if len(told):
        right = int((told["rank"] == told["rank_of_task"]).sum())
        parts.append(f"{right} of {len(told)} networks have the bottleneck rank of their task.")
    elif len(known):
        ranks = Counter(int(rank) for rank in known["rank"])
        listed = ", ".join(f"{rank} ({times})" for rank, times in sorted(ranks.items()))
        parts.append(f"Bottleneck ranks, and how often: {listed}.")
    if good["effective_depth"].nunique() > 1:
        parts.append(_towards(good))
    loose = int((good["crit"] > CRITICAL).sum())
    if loose:
        parts.append(
            f"{loose} of {len(good)} are not at a critical point (crit above {CRITICAL:g}), so that their "
            "Hamiltonian means little; they are hollow in the charts."
        )
    checked = [statement for each in statements for statement in each]
    if checked:
        failed = Counter(statement.name for statement in checked if not statement.holds)
        held = len(checked) - sum(failed.values())
        often = ", ".join(f"{name} ({times})" for name, times in failed.most_common(_FEW))
        ending = f"; those that fail most often: {often}." if failed else "."
        parts.append(f"{held} of {len(checked)} statements checked hold{ending}")
    return " ".join(parts)


def name_of(run: LeakyRun) -> str:
    """A network in a few signs: L̃, k* where it is known, seed."""
    rank = "" if run.task.rank is None else f", k* = {run.task.rank}"
    return f"L̃ = {run.design.effective_depth:g}{rank}, seed {run.design.seed}"


def _fate(run: LeakyRun) -> str:
    if run.diverged is None:
        return ""
    return f"It diverged at epoch {run.diverged}; this is what it was before."


def _rank(run: LeakyRun) -> str:
    found = run.measure(warn=False).summary
    if math.isnan(found["rank"]):
        return "A plain ResNet, L̃ = 0, has no Hamiltonian, and no L̃/2 from which to count a bottleneck rank."
    rank, gap = int(found["rank"]), found["gap"]
    told = run.task.rank
    task = "" if told is None else ", as the task has" if rank == told else f", where the task has {told}"
    if rank == 0:
        return f"No singular value of W is above L̃/2 in layer {int(found['rank_layer'])}: rank 0{task}."
    left = "nothing is left after them" if math.isinf(gap) else f"the next is {gap:.3g} times smaller"
    unclear = " So no bottleneck stands out." if gap < _CLEAR or rank == run.design.width else ""
    values = "value of W is" if rank == 1 else "values of W are"
    return (
        f"The bottleneck rank is {rank}{task}: {rank} singular {values} above L̃/2 in layer "
        f"{int(found['rank_layer'])} of {run.design.layers}, and {left}.{unclear}"
    )


def _place(run: LeakyRun) -> str:
    points = run.measure(warn=False).points
    least = points.iloc[int(points["cost_of_identity"].argmin())]
    stretches = bottleneck_stretches(points)
    where = " and ".join(f"from p = {begin:.2f} to {end:.2f}" for begin, end in stretches)
    text = (
        f"The cost of identity is least at p = {least['p']:.2f} ({least['cost_of_identity']:.2f}), and "
        f"within half a dimension of that {where}"
    )
    highest = run.measure(warn=False).summary["affinity"]
    if math.isnan(highest):
        return f"{text}."
    name = "ReLU" if run.design.sigma == "relu" else run.design.sigma
    least_share = points["negative"].min()
    return (
        f"{text}; there the affinity score of {name} reaches {highest:.3f}, and ‖A₋‖/‖A‖ {least_share:.2g}."
    )


def _hamiltonian(run: LeakyRun) -> str:
    measures = run.measure(warn=False)
    averaged = measures.layers["hamiltonian_averaged"]
    if averaged.isna().all():
        return ""
    crit = measures.summary["crit"]
    state = "are" if crit <= CRITICAL else "are not"
    worth = "" if crit <= CRITICAL else ", so it means little"
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
    held = len(statements) - len(failed)
    more = f" and {len(failed) - _FEW} more" if len(failed) > _FEW else ""
    ending = f"; not: {', '.join(failed[:_FEW])}{more}." if failed else "."
    return f"{held} of {len(statements)} statements of the paper hold{ending}"


def _towards(table: pd.DataFrame) -> str:
    """What the deepest networks have come to."""
    depth = table["effective_depth"].max()
    deep = table[table["effective_depth"] == depth]
    low = table["effective_depth"].min()
    shallow = table[table["effective_depth"] == low]
    text = (
        f"From L̃ = {low:g} to {depth:g} the least cost of identity goes from "
        f"{shallow['cost_of_identity'].median():.3g} to {deep['cost_of_identity'].median():.3g}"
    )
    if shallow["hamiltonian"].notna().any() and deep["hamiltonian"].notna().any():
        before, after = shallow["hamiltonian"].median(), deep["hamiltonian"].median()
        text += f", −2H/L̃ from {before:.3g} to {after:.3g}"
    return f"{text} (medians)."
