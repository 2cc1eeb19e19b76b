"""How long a measurement will take, from its first passes and from gauges that are timed on smaller pairs."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

import torch

from fathometer.capture import Pair, Site
from fathometer.errors import FathometerError
from fathometer.gauges.gauge import Gauge
from fathometer.gauges.reading import read_gauges
from fathometer.measuring.options import MeasureOptions

_MIN_SECONDS = 20.0  # what takes less needs no estimate
_SECONDS_PER_OPERATION = 2.5e-10  # a guess for a fast core, which decides whether gauges are timed at all
_SIZE = 512  # of the pairs that are timed: large enough for matrix products to be as fast as they get
_MAX_LENGTH = 2048  # of their other side
_MAX_SHAPES = 4  # that are timed; others are taken to be as fast

Shape = tuple[int, int, int]
"""n, and the features of x and of y."""


class Estimate:
    """Says once how long a measurement will take: after its second pass, or before the gauges of a batch.

    The first pass of a network is slower than those that follow, so that the second one counts.
    """

    def __init__(
        self,
        options: MeasureOptions,
        device: torch.device,
        batches: int | None,
        samples: int,
        say: Callable[[str], None],
    ) -> None:
        self._options, self._device, self._batches, self._samples = options, device, batches, samples
        self._say = say
        self._passes, self._begun = 0, time.perf_counter()
        self.is_made = False

    def after_pass(self, pairs: Mapping[Site, Pair], *, completes: bool) -> None:
        """Take note of a pass, whose samples are among the pairs; `completes`: the batch is full."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        now = time.perf_counter()
        seconds, self._begun = now - self._begun, now
        self._passes += 1
        rows = max((len(pair.x) for pair in pairs.values()), default=0)
        if rows == 0 or (self._passes == 1 and not completes):
            return
        self.is_made = True
        passes = 1 if completes else math.ceil(self._samples * self._passes / rows)
        shapes = [(self._samples, pair.x.shape[1], pair.y.shape[1]) for pair in pairs.values()]
        known = [name for name, gauge in self._options.chosen_gauges.items() if gauge.takes_samples]
        total = passes * seconds
        batches = self._batches or 1
        if self._device.type == "cpu":  # on a GPU, gauges are read beside the passes
            guess = sum(map(_operations, shapes)) * _SECONDS_PER_OPERATION / torch.get_num_threads()
            if batches * (total + guess) < _MIN_SECONDS:
                return
            with suppress(FathometerError):  # of a gauge, which will raise it again
                for kind in {site.kind for site in pairs}:
                    gauges = {n: gauge for n, gauge in self._options.gauges_at(kind).items() if n in known}
                    of_kind = [shape for site, shape in zip(pairs, shapes, strict=True) if site.kind == kind]
                    total += seconds_of_gauges(gauges, of_kind, next(iter(pairs.values())))
        if batches * total >= _MIN_SECONDS:
            self._say(f"{in_words(batches * total)}: {self._what(len(shapes), known)}")

    def _what(self, sites: int, known: Collection[str]) -> str:
        """Say what the estimate is of."""
        own = ", ".join(name for name in self._options.chosen_gauges if name not in known)
        unit = "tokens" if self._options.counts_tokens else "samples"
        batches = "for each batch" if self._batches is None else _counted(self._batches, "batch", "es")
        without = f"; not counting {own}" if own else ""
        return f"{_counted(sites, 'site', 's')}, {batches} of {self._samples} {unit}{without}"


def seconds_of_gauges(gauges: Mapping[str, Gauge], shapes: Sequence[Shape], like: Pair) -> float:
    """Estimate how long the gauges of one batch take on this CPU: they are timed on smaller random pairs.

    As many are timed together as there are threads, which share caches and memory. What takes long are matrix
    products and decompositions, of n d min(n, d) operations, where both sizes are reduced by the same factor.
    What remains of a very long or very wide pair is quadratic in n (distances between samples), and linear
    in d.

    Args:
        gauges: of the package.
        shapes: n, and the features of x and of y, of every site.
        like: a pair whose dtype and resolution all of them have.
    """
    counts = Counter(shapes)
    heaviest = sorted(counts, key=lambda shape: counts[shape] * _operations(shape))[-_MAX_SHAPES:]
    threads = min(torch.get_num_threads(), len(shapes))
    timed, operations = 0.0, 0.0
    with torch._C.DisableTorchFunction():
        _seconds(gauges, (64, 64, 64), like, threads)  # imports what the gauges need
        for shape in heaviest:
            smaller, factor = _reduced(shape)
            timed += counts[shape] * factor * _seconds(gauges, smaller, like, threads)
            operations += counts[shape] * _operations(shape)
    total = sum(count * _operations(shape) for shape, count in counts.items())
    return timed * total / operations / threads


def in_words(seconds: float) -> str:
    """Return a duration as precisely as an estimate is.

    Example:
        >>> in_words(44), in_words(170), in_words(10_000)
        ('about 40 seconds', 'about 3 minutes', 'about 3 hours')
    """
    for unit, length, step in (("seconds", 1, 10), ("minutes", 60, 1)):
        if seconds < 90 * length:
            return f"about {max(round(seconds / length / step), 1) * step} {unit}"
    return f"about {round(seconds / 3600)} hours"


def _counted(count: int, noun: str, ending: str) -> str:
    return f"{count} {noun}{ending if count != 1 else ''}"


def _operations(shape: Shape) -> float:
    """Return roughly how many operations a pair takes, without constant factors."""
    n, *widths = shape
    d = max(widths)
    return n * (n + d) * min(n, d)


def _reduced(shape: Shape) -> tuple[Shape, float]:
    """Return the shape of a smaller pair, and how much longer the pair itself takes."""
    n, d = shape[0], max(shape[1:])
    scale = min(1.0, _SIZE / min(n, d))
    rows, width = max(round(n * scale), 2), max(round(d * scale), 1)
    fewer, narrower = min(rows, _MAX_LENGTH), min(width, _MAX_LENGTH)
    of_x, of_y = (max(round(narrower * features / d), 1) for features in shape[1:])
    return (fewer, of_x, of_y), (rows / fewer) ** 2 * (width / narrower) / scale**3


def _seconds(gauges: Mapping[str, Gauge], shape: Shape, like: Pair, count: int) -> float:
    """Return how long the gauges of so many random pairs take."""
    n, *widths = shape
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(n, width, generator=generator).to(like.x.dtype) for width in widths)
    y = x.relu() if x.shape == y.shape else y
    pair, begun = like.with_sides(x, y), time.perf_counter()
    read_gauges(gauges, dict.fromkeys(map(str, range(count)), pair))
    return time.perf_counter() - begun
