"""Replace one site after the other, always the one that costs least, until the budget is used."""

from __future__ import annotations

import heapq
import math
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, TypeAlias

import pandas as pd
from torch import Tensor, nn

from fathometer.errors import InputError
from fathometer.linearizing.budget import Budget
from fathometer.linearizing.criteria import MEASURED, CriterionLike, gauge_costs, taylor_costs
from fathometer.linearizing.journal import Journal, Row, Step
from fathometer.linearizing.maps import Kind
from fathometer.linearizing.slots import Slot, replaced_by
from fathometer.linearizing.trial import Fit, Score, Trial
from fathometer.progress import show_nothing

Snapshot: TypeAlias = "tuple[dict[Slot, nn.Module | None], list[Tensor]]"
"""The replacements, and the statistics of BatchNorm layers."""

_MIN_INPUTS = 16  # on which `quick-kl` measures
_ROUNDING = 1e-6  # of points of accuracy


class Choice:
    """The state of a network while its sites are replaced.

    Attributes:
        curve: a row for the original network, and one after each step.
        maps: the map that would replace each site that was left at the last `fit`.
        costs: the cost of each site before the first step, by the criterion.
        fits: how well a map fits each site of the original network.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        trial: Trial,
        test: Trial,
        kind: Kind,
        activations: Sequence[Any] = (),
    ) -> None:
        self._slots, self._trial, self._test = slots, trial, test
        self._kind, self._activations = kind, activations
        self.maps: dict[Slot, nn.Module] = {}
        self._original_state = self.snapshot()
        self.curve: list[Row] = []
        self.costs: dict[Slot, float] = {}
        self.fits: dict[Slot, Fit] = {}

    @cached_property
    def original(self) -> Score:
        """The score of the original network on the test data; read it before anything is replaced."""
        return self._test.score()

    @property
    def replaced(self) -> list[Slot]:
        """The slots that have a replacement, in order of depth."""
        return [slot for slot in self._slots if slot.replacement is not None]

    def fit(self, slots: Sequence[Slot] | None = None) -> None:
        """Fit the maps of some sites, or of all that are left, to the network as it is now."""
        left = [slot for slot in self._slots if slot.replacement is None]
        found = self._trial.fit(left if slots is None else slots, self._kind)
        self.maps |= {slot: each.module for slot, each in found.items()}
        self.fits = self.fits or found

    def replace(self, slots: Sequence[Slot], show: Callable[..., None] = show_nothing) -> None:
        """Put the maps of these sites in their places, and adapt the rest of the network.

        Maps from the first of these sites on are fitted again, and then BatchNorm is recalibrated to them;
        either is kept only if the outputs are closer to the original ones with it.
        """
        for slot in slots:
            slot.replacement = self.maps[slot]
        self._adapt(min(slot.site.order for slot in slots), show)

    def _adapt(self, first: int, show: Callable[..., None] = show_nothing) -> None:
        divergence = self._trial.score().divergence
        if self._kind != "identity":
            divergence = self._if_closer(partial(self._fit_in_order, first, show), divergence)
        if self._trial.has_running_means:
            self._if_closer(self._trial.recalibrate, divergence)

    def _fit_in_order(self, first: int, show: Callable[..., None]) -> None:
        """Fit the maps in use, one after the other, to what the original network gives at their sites.

        A map that is fitted to what its own call would give now repeats the errors of those before it.
        """
        chosen = [slot for slot in self.replaced if slot.site.order >= first]
        for done, slot in enumerate(chosen, 1):
            found = self._trial.fit([slot], self._kind, self._original_network)
            slot.replacement = found[slot].module
            show(done, len(chosen))

    @contextmanager
    def _original_network(self) -> Iterator[None]:
        state = self.snapshot()
        self.restore(self._original_state)
        try:
            yield
        finally:
            self.restore(state)

    def _if_closer(self, change: Callable[[], None], before: float) -> float:
        """Change the network if the divergence falls, and return the divergence."""
        state = self.snapshot()
        change()
        after = self._trial.score().divergence
        if after < before:
            return after
        self.restore(state)
        return before

    def row(self, site: str) -> Row:
        """Describe the network as it is now."""
        score = self._test.score() if site else self.original
        left = [slot for slot in self._slots if slot.replacement is None]
        return {
            "replaced": len(self._slots) - len(left),
            "site": site,
            "divergence": score.divergence,
            **score.outcome,
            "agreement": score.agreement,
            "elements": sum(slot.elements for slot in left),
            "flops": self._test.flops(),
            "seconds": score.seconds / len(self._test.batches),
        }

    def run(
        self, criterion: CriterionLike, budget: Budget, seed: int, journal: Journal, show: Callable[..., None]
    ) -> None:
        """Replace sites until the budget is used."""
        if budget.unit == "points":
            self._check_points()
        known = journal.steps
        self.curve = [known[0].row if known else self.row("")]
        journal.add(Step(self.curve[0], {}))
        by_name = {slot.site.name: slot for slot in self._slots}
        order = Order(self._trial_for(criterion), criterion, seed, budget, self._activations)
        total = int(budget.amount) if budget.unit == "sites" else len(self._slots)
        while len(self.replaced) < len(self._slots) and not _is_used(budget, self.curve):
            step = len(self.curve)
            measures = criterion == "greedy-kl" and step >= len(known)
            if step == 1 or measures:
                self.fit()
            show(len(self.replaced), total, f"{self.curve[-1]['divergence']:.3g}")
            before = self.snapshot() if budget.unit == "points" else None
            if step < len(known):
                order.costs = {by_name[name]: cost for name, cost in known[step].costs.items()}
                slot = by_name[known[step].row["site"]]
            else:
                left = {s: self.maps[s] for s in self._slots if s.replacement is None}
                slot = order.next(left, partial(_show_measuring, show, len(self.replaced), total))
            if step > 1 and not measures:
                self.fit([slot])
            self.costs = self.costs or dict(order.costs)
            self.replace([slot])
            self.curve.append(known[step].row if step < len(known) else self.row(slot.site.name))
            costs = {slot.site.name: cost for slot, cost in order.costs.items()}
            journal.add(Step(self.curve[-1], costs))
            if before is not None and exceeds(self.curve, budget.amount):
                if step == 1:
                    reason = f"{slot.site}, the cheapest site, costs more than the budget"
                    warnings.warn(f"nothing is replaced: {reason}", stacklevel=3)
                self.restore(before)
                self.curve.pop()
                break
            self._check_finite()
        if budget.unit == "elements":
            self._put_back(budget.amount)
        show(len(self.replaced), len(self.replaced))

    def _put_back(self, max_elements: float) -> None:
        """Undo replacements that the budget has room for, first that whose return helps the outputs most."""
        while True:
            room = max_elements - self.curve[-1]["elements"]
            fitting = [slot for slot in self.replaced if slot.elements <= room]
            if not fitting:
                return
            divergences = {slot: divergence_with(self._trial, slot, None) for slot in fitting}
            slot = min(fitting, key=lambda each: divergences[each])
            slot.replacement = None
            self._adapt(slot.site.order)
            self.curve.append(self.row(f"{slot.site.name} (put back)"))

    def replace_all(self, show: Callable[..., None]) -> None:
        """Replace every site at once."""
        self.fit()
        self.curve = [self.row("")]
        self.replace(self._slots, show)
        self.curve.append(self.row(", ".join(slot.site.name for slot in self._slots)))
        self._check_finite()

    def _check_finite(self) -> None:
        if math.isinf(self.curve[-1]["divergence"]):
            raise InputError(
                f"{self.curve[-1]['site']}: the outputs are not finite numbers after it was replaced; leave "
                "it out, or choose fewer sites",
                parameter="sites",
            )

    def _check_points(self) -> None:
        reason = self.original.label_problem
        advice = "give inputs alone to count agreement with the original network"
        if not reason and not self._test.are_logits:
            reason, advice = "the outputs are not logits", "give a number of sites"
        if reason:
            raise InputError(f"points of accuracy cannot be counted: {reason}; {advice}", parameter="budget")

    def costs_by(
        self, criterion: CriterionLike, seed: int = 0, show: Callable[..., None] = show_nothing
    ) -> dict[Slot, float]:
        """Return the cost of replacing each site alone, in the network as it is now."""
        return costs_of(criterion, self.maps, self._trial_for(criterion), seed, self._activations, show)

    def _trial_for(self, criterion: CriterionLike) -> Trial:
        """Return what a criterion is measured on.

        For `quick-kl`, all sites together see as many inputs as three forward passes over the data: about
        what a forward and a backward pass compute.
        """
        if criterion != "quick-kl":
            return self._trial
        with self._original_network():
            return self._trial.most_uncertain(max(_MIN_INPUTS, 3 * self._trial.inputs // len(self._slots)))

    def table(self) -> pd.DataFrame:
        """Describe each site: its size, how well a map fits, its cost, and in which step it was replaced."""
        steps = {row["site"]: number for number, row in enumerate(self.curve)}
        at_once = len(self.curve) == 2 and len(self.replaced) > 1
        rows = [
            {
                "site": slot.site.name,
                "operator": slot.site.operator,
                "width": slot.widths[0],
                "elements": slot.elements,
                "r2": self.fits[slot].r2,
                "cost": self.costs.get(slot, math.nan),
                "step": 1 if at_once else steps.get(slot.site.name, 0) if slot.replacement else 0,
            }
            for slot in self._slots
        ]
        return pd.DataFrame(rows).set_index("site")

    def snapshot(self) -> Snapshot:
        """Return what `restore` needs to come back to the network as it is now."""
        statistics = [value.clone() for value in self._trial.running_statistics()]
        return {slot: slot.replacement for slot in self._slots}, statistics

    def restore(self, state: Snapshot) -> None:
        """Undo all steps since a snapshot."""
        replacements, statistics = state
        for slot, replacement in replacements.items():
            slot.replacement = replacement
        for value, before in zip(self._trial.running_statistics(), statistics, strict=True):
            value.copy_(before)


class Order:
    """Chooses the site that is replaced next.

    If elements are counted, the change of the outputs is divided by the elements of the site.

    Attributes:
        costs: the latest cost of each site.
    """

    def __init__(
        self, trial: Trial, criterion: CriterionLike, seed: int, budget: Budget, activations: Sequence[Any]
    ) -> None:
        self._trial, self._criterion, self._seed, self._activations = trial, criterion, seed, activations
        self._per_element = budget.unit == "elements" and criterion in (*MEASURED, "taylor")
        self._divergence = 0.0  # of the network as it is
        self.costs: dict[Slot, float] = {}

    def next(self, maps: Mapping[Slot, nn.Module], show: Callable[..., None]) -> Slot:
        """Return the site with the smallest cost among those that are left."""
        if self._criterion == "greedy-kl" and self.costs:
            return self._least_divergence(maps)
        if not self.costs:
            self.costs = costs_of(self._criterion, maps, self._trial, self._seed, self._activations, show)
        return min(maps, key=self._ranking_cost)

    def _ranking_cost(self, slot: Slot) -> float:
        if not self._per_element:
            return self.costs[slot]
        return (self.costs[slot] - self._divergence) / slot.elements

    def _least_divergence(self, maps: Mapping[Slot, nn.Module]) -> Slot:
        """Measure again, beginning with the sites that cost least before, until no other can be cheaper.

        This lazy search assumes that the cost of a site does not fall from step to step.
        """
        if self._per_element:
            self._divergence = self._trial.score().divergence
        queue = [(self._ranking_cost(slot), slot.site.order, slot) for slot in maps]
        heapq.heapify(queue)
        best: Slot | None = None
        while queue and (best is None or queue[0][0] < self._ranking_cost(best)):
            slot = heapq.heappop(queue)[2]
            self.costs[slot] = divergence_with(self._trial, slot, maps[slot])
            if best is None or self._ranking_cost(slot) < self._ranking_cost(best):
                best = slot
        assert best is not None
        return best


def costs_of(
    criterion: CriterionLike,
    maps: Mapping[Slot, nn.Module],
    trial: Trial,
    seed: int,
    activations: Sequence[Any] = (),
    show: Callable[..., None] = show_nothing,
) -> dict[Slot, float]:
    """Return the cost of replacing each site in the network as it is now, by any criterion.

    Raises:
        InputError: if a cost is not a number.
    """
    costs: dict[Slot, float] = {}
    if callable(criterion):
        values = {slot: criterion(slot.site) for slot in maps}
        costs = {slot: math.nan if value is None else float(value) for slot, value in values.items()}
    elif criterion in MEASURED:
        for done, (slot, each) in enumerate(maps.items(), 1):
            costs[slot] = divergence_with(trial, slot, each)
            show(done, len(maps))
    elif criterion == "taylor":
        costs = taylor_costs(trial, maps)
    elif criterion == "random":
        draw = random.Random(seed)
        costs = {slot: draw.random() for slot in maps}
    elif criterion == "depth":
        costs = {slot: -float(slot.site.order) for slot in maps}
    else:
        costs = gauge_costs(criterion, maps, trial, activations)
    for slot, cost in costs.items():
        if math.isnan(cost):
            name = criterion if isinstance(criterion, str) else "the function"
            raise InputError(
                f"{slot.site}: {name} gives no number for it; choose another one, or leave this site out",
                parameter="criterion",
            )
    return costs


def divergence_with(trial: Trial, slot: Slot, replacement: nn.Module | None) -> float:
    """Return the divergence of the outputs if one more site is replaced, or with None, one fewer."""
    with replaced_by({slot: replacement}):
        return trial.score().divergence


def exceeds(curve: Sequence[Row], points: float) -> bool:
    """Tell whether more points of accuracy were lost; without labels, of agreement with the original."""
    first, last = curve[0], curve[-1]
    name = "accuracy" if "accuracy" in first else "agreement"
    lost = 100 * (float(first[name]) - float(last[name]))
    return math.isinf(last["divergence"]) or lost > points + _ROUNDING


def _show_measuring(show: Callable[..., None], replaced: int, total: int, done: int, of: int) -> None:
    show(replaced, total, f"measured {done} of {of} sites")


def _is_used(budget: Budget, curve: Sequence[Row]) -> bool:
    if budget.unit == "points":
        return False
    last = curve[-1]
    if budget.unit == "elements":
        return bool(last["elements"] <= budget.amount)
    return bool(last["replaced"] >= budget.amount)
