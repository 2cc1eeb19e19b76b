"""Checks of how a gauge behaves beside others: in batches, in threads, with what is not its own."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from fathometer.gauges.registry import read_one_by_one, read_together
from fathometer.testing.promises import GaugeError
from fathometer.testing.subject import Subject, samples

_SHAPES = ((40, 6), (40, 9), (10, 24), (40, 6), (30, 1))


def repeatable(subject: Subject) -> None:
    """Twice the same, to the last bit on a CPU, whatever the state of the random numbers."""
    pair = subject.pair()
    readings = []
    with torch.random.fork_rng():
        for seed in (1, 2):
            torch.manual_seed(seed)
            readings.append(subject.read(*pair))
    exact = 0.0 if subject.device.type == "cpu" else None
    subject.same(readings[1], readings[0], "once more", exact)


def random_state_left_alone(subject: Subject) -> None:
    """No random number is drawn from torch's own state: that would change the training that it watches."""
    generators = [torch.default_generator]
    if subject.device.type == "cuda":
        generators.append(torch.cuda.default_generators[torch.cuda.current_device()])
    pair = subject.pair()
    with torch.random.fork_rng():
        before = [generator.get_state() for generator in generators]
        subject.read(*pair)
        after = [generator.get_state() for generator in generators]
    if not all(map(torch.equal, before, after)):
        raise GaugeError("expected torch's random state as it was; draw from a torch.Generator of your own")


def inputs_left_alone(subject: Subject) -> None:
    """Nothing is written into X or Y: the next gauge gets the same."""
    for n, d in ((40, 6), (10, 24)):
        x, y = subject.pair(n, d)
        given = (x.clone(), y.clone())
        subject.read_unless_refused(*given)
        for side, mine, theirs in zip("xy", (x, y), given, strict=True):
            if not torch.equal(mine, theirs):
                raise GaugeError(f"{side} was written into; work on a copy")


def strides(subject: Subject) -> None:
    """Views that do not lie row by row in memory read as their copies."""
    x, y = subject.pair()
    expected = subject.read(x, y)
    columns = (side.mT.contiguous().mT for side in (x, y))
    subject.same(subject.read(*columns), expected, "laid out by columns")
    every_other = (torch.stack((side, side), -1).flatten(-2)[:, ::2] for side in (x, y))
    subject.same(subject.read(*every_other), expected, "every other column of a wider matrix")


def threads(subject: Subject) -> None:
    """Called from several threads at once it reads as it does alone."""
    pairs = [subject.pair(n, d, seed=seed) for seed, (n, d) in enumerate(2 * _SHAPES)]
    alone = [subject.read_unless_refused(*pair) for pair in pairs]
    with ThreadPoolExecutor(4) as pool:
        beside = list(pool.map(lambda pair: subject.read_unless_refused(*pair), pairs))
    for found, expected in zip(beside, alone, strict=True):
        subject.same(found, expected, "in threads")


def among_others(subject: Subject) -> None:
    """Read with other pairs, one by one or in batches, in any order, it gives what it gives alone."""
    pairs = [subject.pair(n, d, seed=seed) for seed, (n, d) in enumerate(_SHAPES)]
    pairs += [(x.float(), y.float()) for x, y in pairs[:2]]
    alone = [subject.read_unless_refused(*pair) for pair in pairs]
    known = [(pair, found) for pair, found in zip(pairs, alone, strict=True) if found]
    for chosen in (known, known[::-1]):
        for how in (read_one_by_one, read_together):
            rows = subject.read_many([pair for pair, _ in chosen], how)
            for row, (_, expected) in zip(rows, chosen, strict=True):
                subject.same(row, expected, "read with others")


@torch.no_grad()
def batches(subject: Subject) -> None:
    """A batch `[batch, samples, features]`, in any order, gives what its items give alone."""
    for n, d in ((40, 6), (12, 12), (10, 24)):
        x = torch.stack([samples(n, d, seed) for seed in range(4)]).to(subject.device)
        x[2, :, 0] = x[2, 0, 0]
        y = torch.stack([x[0].relu(), x[1].tanh(), x[2].square(), torch.zeros_like(x[3])])
        alone = [subject.read_unless_refused(*pair) for pair in zip(x, y, strict=True)]
        for whole in ([0, 1, 2, 3], [3, 1, 0, 2]):
            order = [item for item in whole if alone[item] is not None]
            if not order:
                continue
            found = subject.gauge(x[order], y[order])
            values = found if isinstance(found, Mapping) else {"": found}
            columns = {name: _column(column, len(order)) for name, column in values.items()}
            for place, item in enumerate(order):
                row = {name: float(column[place]) for name, column in columns.items()}
                subject.same(row, alone[item], f"item {item} of a batch [{len(order)}, {n}, {d}]")


def _column(values: object, items: int) -> Tensor:
    column = torch.as_tensor(values)
    if column.shape != (items,):
        raise GaugeError(f"expected a value for each of {items} items, got shape {list(column.shape)}")
    return column
