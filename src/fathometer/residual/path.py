"""The residual path of any network: a sounding whose sites are its residual blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from glob import escape
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import torch
import torch.nn.functional
from torch import Tensor, nn

from fathometer.capture import OPERATORS, Pooling, Reduction, unwrapped
from fathometer.errors import FathometerError, ForwardError, InputError, first_line
from fathometer.measuring.batches import batches_of, pieces, run
from fathometer.measuring.measure import Progress, measure
from fathometer.measuring.options import Call, Leftover
from fathometer.measuring.placement import evaluating
from fathometer.models import LoadedModel
from fathometer.residual.blocks import find_activation, find_blocks
from fathometer.residual.gauges import PathGauges, check_gamma
from fathometer.residual.trace import Activation, Called, key_of, traced
from fathometer.results.sounding import Sounding

Sigma: TypeAlias = "str | Callable[[Tensor], Tensor]"

_FEW = 2  # samples are enough to see what is added to what


def residual_path(
    model: nn.Module | LoadedModel,
    data: Any,
    *,
    blocks: str | Iterable[str] | None = None,
    sigma: Sigma | None = None,
    gamma: float = 1e-3,
    samples: int = 512,
    batches: int | None = None,
    reduction: Reduction | Pooling = "mean",
    leftover: Leftover = "drop",
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    call: Call | None = None,
    seed: int = 0,
    name: str | None = None,
    progress: bool | Progress = False,
) -> Sounding:
    """The path A_0 … A_L along the residual blocks: how many dimensions, at what cost, how fast.

    A sounding with a site for each block. Its gauges are functions of the block's input A_{l−1} and output
    A_l, both `[samples, features]`: `stable_rank` ‖A_l‖*² / ‖A_l‖² (`_in`: of A_{l−1}, `_centred`: of A_l
    less its mean), `cost_of_identity` Tr Aᵀ(K + γI)⁻¹A of A = A_l with K = σ(A_l)σ(A_l)ᵀ, `speed`
    ‖A_l − A_{l−1}‖ / ‖A_{l−1}‖ (not a number where the width changes), the `affinity` of σ on A_l,
    `nonnegativity` of A_l, `rms`, the size of its entries, and `carriers`, the share of samples that carry
    its norm.

    Args:
        model: as for `measure`.
        data: as for `measure`.
        blocks: the modules to measure, by patterns of names or classes; if left out, found by what is added
            to what in a forward pass on two samples.
        sigma: σ, the name of an activation or a function, for all blocks; if left out, each block has its
            own: that which it calls most often, gates aside. Where it calls none, it has that of the other
            blocks, or of the network.
        gamma: γ₀ of the cost of identity, relative to ‖K‖.
        samples: how many samples make a batch that is measured.
        batches: how many of these to measure; all that the data give if left out.
        reduction: how tensors become `[samples, features]`, before σ is applied; `"tokens"` for language
            models.
        leftover: as for `measure`, like all that follow.
        batch_size: at most so many inputs in a forward pass.
        device: where to run.
        call: how to run the network on an item of the data.
        seed: of the order of a `Dataset` and of random positions.
        name: what to call the network in the result.
        progress: True for a bar, or a function of (samples done, samples in all or None).

    Example:
        >>> import torch
        >>> from torch import nn
        >>> class Block(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.inner = nn.Linear(8, 8)
        ...     def forward(self, x):
        ...         return x + self.inner(x).relu()
        >>> path = residual_path(nn.Sequential(Block(), Block(), Block()), torch.randn(100, 8), samples=50)
        >>> [site.name for site in path.sites], path.provenance.settings["path"]["sigma"]
        (['0', '1', '2'], 'relu')
    """
    check_gamma(gamma)
    named = None if sigma is None else _named(sigma)
    network = unwrapped(model.module if isinstance(model, LoadedModel) else model)
    given, data = _first_item(data, batch_size, seed)
    calls = _calls(network, given, call)
    found = find_blocks(calls, [blocks] if isinstance(blocks, str) else blocks)
    paths = list(dict.fromkeys(block.path for block in found))
    whole = [called for called in calls if not called.path]
    usual = named or find_activation(found) or find_activation(whole)
    own = {} if usual is None or named else _own_activations(calls, paths, usual)
    sigmas = {key_of(each): each for each in (usual, *own.values()) if each}
    gauges = PathGauges(list(sigmas.values()), gamma)
    sounding = measure(
        model,
        data,
        samples=samples,
        batches=batches,
        gauges=gauges.every(),
        sites=[f"module:{escape(path)}" for path in paths],
        reduction=reduction,
        widths="any",
        leftover=leftover,
        batch_size=batch_size,
        device=device,
        call=call,
        seed=seed,
        name=name,
        progress=progress,
    )
    operators = {site.name: own.get(site.name, usual).operator for site in sounding.sites} if usual else {}
    facts = {
        "blocks": "found" if blocks is None else "given",
        "sigma": operators if len(set(operators.values())) > 1 else usual and usual.operator,
        "gamma": gamma,
    }
    settings = {**sounding.provenance.settings, "path": facts}
    numbers = {site: list(sigmas).index(key_of(activation)) for site, activation in own.items()}
    return replace(
        sounding,
        records=gauges.choose(sounding.records, numbers),
        provenance=replace(sounding.provenance, settings=settings),
    )


class Bottleneck(NamedTuple):
    """Where a path has the fewest dimensions.

    Attributes:
        site: the block after which it does.
        place: the number of that block, from 1.
        blocks: how many there are.
        stable_rank: there, the mean over batches.
        most: what it could be, the smaller of the number of features and of samples.
        start: the stable rank of the input of the first block.
    """

    site: str
    place: int
    blocks: int
    stable_rank: float
    most: int
    start: float

    @property
    def is_inside(self) -> bool:
        """Whether the path has more dimensions before and after: else it is no bottleneck, strictly."""
        return self.stable_rank < self.start and self.place < self.blocks

    def __str__(self) -> str:
        where = ", the last block" if self.place == self.blocks else ""
        if self.stable_rank >= self.start:
            where = f", but the path begins with {self.start:.1f}"
        return f"{self.site} (stable rank {self.stable_rank:.1f} of {self.most}{where})"


def bottleneck(path: Sounding) -> Bottleneck:
    """The block after which the stable rank is least, whether or not it is less than at both ends.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> layers = nn.Sequential(nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Linear(1, 9))
        >>> print(bottleneck(residual_path(layers, torch.randn(60, 9), samples=60, blocks="*")))
        1 (stable rank 1.0 of 1)
    """
    ranks = path.mean("stable_rank")
    site = str(ranks.idxmin())
    rows = path.records[path.records["site"] == site]
    most = int(rows[["n", "d"]].min(axis=1).max())
    place, start = list(ranks.index).index(site) + 1, float(path.mean("stable_rank_in").iloc[0])
    return Bottleneck(site, place, len(ranks), float(ranks[site]), most, start)


def _calls(network: nn.Module, given: Any, call: Call | None) -> list[Called]:
    """What happens in one forward pass on a few samples, where the network is."""
    device = next((t.device for t in (*network.parameters(), *network.buffers())), torch.device("cpu"))
    forked = [device] if device.type == "cuda" else []
    try:
        with (
            torch.random.fork_rng(forked),  # the measurement begins as if nothing had been drawn
            evaluating(network),
            torch.no_grad(),
            traced(network, _FEW) as calls,
        ):
            run(network, given, device, call)
    except FathometerError:
        raise
    except Exception as error:
        raise ForwardError(
            f"the network failed on its input ({type(error).__name__}: {first_line(error)}); "
            "`call` can run it in another way"
        ) from error
    if not any(called.module is network for called in calls):
        raise InputError("the network itself was not called; `call` must call model(...)")
    return calls


def _own_activations(
    calls: Sequence[Called], paths: Sequence[str], usual: Activation
) -> dict[str, Activation]:
    """The σ of each call of a block, by the name of its site."""
    own: dict[str, Activation] = {}
    counts: Counter[str] = Counter()
    for called in calls:
        if called.path in paths:
            counts[called.path] += 1
            number = counts[called.path]
            site = called.path if number == 1 else f"{called.path}#{number}"
            own[site] = find_activation([called], gates=False) or usual
    return own


def _first_item(data: Any, batch_size: int | None, seed: int) -> tuple[Any, Any]:
    """A few samples, and the data with them still in."""
    once = isinstance(data, Iterator)
    with torch.random.fork_rng([]):
        items = iter(data if once else batches_of(data, batch_size, seed))
        first = next(items, None)
    if first is None:
        raise InputError("data: expected samples to measure, got none")
    few = next(pieces([first], _FEW, _FEW, tokens=False)).value
    return few, chain([first], items) if once else data


def _named(sigma: Sigma) -> Activation:
    if isinstance(sigma, type) or not (callable(sigma) or isinstance(sigma, str)):
        raise InputError(
            f"sigma: expected a function or the name of an activation, got {sigma!r}; "
            "give such as 'relu', torch.relu or nn.ReLU()"
        )
    if callable(sigma):
        return Activation(getattr(sigma, "__name__", type(sigma).__name__), sigma)
    function = getattr(torch.nn.functional, sigma, None) or getattr(torch, sigma, None)
    if sigma not in OPERATORS or function is None:
        raise InputError(
            f"sigma: expected a function or one of {', '.join(sorted(OPERATORS))}, got {sigma!r}"
        )
    return Activation(sigma, function)
