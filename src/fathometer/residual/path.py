"""Measures the residual path of any network: a sounding whose sites are its residual blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from glob import escape
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from fathometer.capture import OPERATORS, unwrapped
from fathometer.capture.blocks import find_activation, find_blocks
from fathometer.capture.sites import function_of
from fathometer.capture.trace import Activation, ModuleCall, traced
from fathometer.errors import FathometerError, ForwardError, InputError, check_positive, first_line
from fathometer.gauges.reading import read_gauges
from fathometer.gauges.registry import choose_gauges
from fathometer.gauges.together import Pairs
from fathometer.measuring.batches import as_tensors, batches_of, pieces, run, with_labels
from fathometer.measuring.loop import Progress, evaluating, refusing_single_images
from fathometer.measuring.measure import measure_by_label
from fathometer.measuring.options import Call, MeasureOptions, with_changes
from fathometer.models import LoadedModel
from fathometer.residual.gauges import path_gauges
from fathometer.results.sounding import Sounding

Sigma: TypeAlias = "str | Callable[[Tensor], Tensor]"

_TRACE_SAMPLES = 2  # samples are enough to see what is added to what
_SIGMAS = OPERATORS - {"prelu", "threshold"}  # these two need further arguments


def residual_path(
    model: nn.Module | LoadedModel,
    data: Any,
    options: MeasureOptions | None = None,
    *,
    blocks: str | Iterable[str] | None = None,
    sigma: Sigma | None = None,
    gamma: float = 1e-3,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    name: str | None = None,
    progress: bool | Progress = False,
    **changes: Any,
) -> Sounding:
    """Measure the path A_0 … A_L along the residual blocks: how many dimensions, at what cost, how fast.

    The result is a sounding with a site for each block. Its gauges are functions of the block's input A_{l−1}
    and output A_l, both `[samples, features]`: `stable_rank` ‖A_l‖*² / ‖A_l‖² (`_in`: of A_{l−1}, `_centred`:
    of A_l minus its mean), `cost_of_identity` Tr Aᵀ(K + γI)⁻¹A of A = A_l with K = σ(A_l)σ(A_l)ᵀ, `speed`
    ‖A_l − A_{l−1}‖ / ‖A_{l−1}‖ (NaN where the width changes), the `affinity` of σ on A_l, `nonnegativity` of
    A_l, `rms`, the size of its entries, and `participation`, the share of samples that carry its norm.

    Args:
        model: as for `measure`.
        data: as for `measure`.
        options: as for `measure`; `gauges` and `sites` are those of the path. σ acts on the reduced
            tensors. Use `reduction="tokens"` for language models.
        blocks: the modules to measure, by patterns of names or classes; if left out, found by what is added
            to what in a forward pass on two samples.
        sigma: σ for all blocks, the name of an activation or a function; if left out, each block has its
            own: the one that it calls most often, without gates. A block that calls none has that of the
            other blocks, or of the network.
        gamma: γ₀ of the cost of identity, relative to ‖K‖.
        batch_size: as for `measure`, like all that follow.
        device: where to run.
        name: name of the network in the result.
        progress: True for a bar, or a function of (samples done, total or None).
        changes: options by name, `samples=128`.

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
    for option in ("gauges", "sites"):
        if option in changes:
            raise InputError("has no effect here: a path has its own; use measure", parameter=option)
    options = with_changes(options, changes, caller="residual_path")
    gamma = check_positive("gamma", gamma)
    given_sigma = None if sigma is None else _activation(sigma)
    network = unwrapped(model.module if isinstance(model, LoadedModel) else model)
    first, data = _first_samples(with_labels(data), batch_size, options.seed)
    calls = _module_calls(network, first, options.call)
    found = find_blocks(calls, [blocks] if isinstance(blocks, str) else blocks)
    paths = list(dict.fromkeys(block.path for block in found))
    whole = [call for call in calls if not call.path]
    common = given_sigma or find_activation(found) or find_activation(whole)
    own = {} if common is None or given_sigma else _own_activations(calls, paths, common)
    sites = tuple(f"module:{escape(path)}" for path in paths)
    sounding = measure_by_label(
        model,
        data,
        replace(options, gauges=tuple(path_gauges(common, gamma)), sites=sites),
        lambda pairs: _read(pairs, own, common, gamma),
        batch_size=batch_size,
        device=device,
        name=name,
        progress=progress,
    )[""]
    operators = {site.name: own.get(site.name, common).operator for site in sounding.sites} if common else {}
    facts = {
        "blocks": "found" if blocks is None else "given",
        "sigma": operators if len(set(operators.values())) > 1 else common and common.operator,
        "gamma": gamma,
    }
    settings = {**sounding.provenance.settings, "path": facts}
    return replace(sounding, provenance=replace(sounding.provenance, settings=settings))


def _read(
    pairs: Pairs, own: Mapping[str, Activation], common: Activation | None, gamma: float
) -> list[dict[str, float]]:
    """Read the gauges of all blocks, those with the same σ together."""
    sigmas = {site: own.get(site, common) for site in pairs}
    groups: dict[Any, dict[str, tuple[Tensor, Tensor]]] = {}
    for site, pair in pairs.items():
        sigma = sigmas[site]
        groups.setdefault(sigma and sigma.key, {})[site] = pair
    values: dict[str, dict[str, float]] = {}
    for group in groups.values():
        gauges = choose_gauges(path_gauges(sigmas[next(iter(group))], gamma))
        values |= zip(group, read_gauges(gauges, group), strict=True)
    return [values[site] for site in pairs]


class Bottleneck(NamedTuple):
    """The block after which a path has the fewest dimensions.

    Attributes:
        site: the block after which the stable rank is smallest.
        number: the number of that block, from 1.
        blocks: the number of blocks.
        stable_rank: the stable rank there, the mean over batches.
        max_rank: the largest possible one, the smaller of the numbers of features and of samples.
        initial_rank: the stable rank of the input of the first block.
    """

    site: str
    number: int
    blocks: int
    stable_rank: float
    max_rank: int
    initial_rank: float

    def __str__(self) -> str:
        where = ", the last block" if self.number == self.blocks else ""
        if self.stable_rank >= self.initial_rank:
            where = f", but the path begins with {self.initial_rank:.1f}"
        return f"{self.site} (stable rank {self.stable_rank:.1f} of {self.max_rank}{where})"


def bottleneck(path: Sounding) -> Bottleneck:
    """Return the block after which the stable rank is smallest, whether or not both ends have more.

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
    max_rank = int(rows[["n", "d"]].min(axis=1).max())
    number, initial_rank = list(ranks.index).index(site) + 1, float(path.mean("stable_rank_in").iloc[0])
    return Bottleneck(site, number, len(ranks), float(ranks[site]), max_rank, initial_rank)


def _module_calls(network: nn.Module, first: Any, call: Call | None) -> list[ModuleCall]:
    """Trace one forward pass on a few samples of the first batch, where the network is."""
    few = next(pieces([first], _TRACE_SAMPLES, _TRACE_SAMPLES, tokens=False)).value
    device = next((t.device for t in (*network.parameters(), *network.buffers())), torch.device("cpu"))
    forked = [device] if device.type == "cuda" else []
    try:
        with (
            torch.random.fork_rng(forked),  # the measurement begins as if nothing had been drawn
            evaluating(network),
            torch.no_grad(),
            refusing_single_images(network, first, on=call is None),
            traced(network, _TRACE_SAMPLES) as calls,
        ):
            run(network, few, device, call)
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
    calls: Sequence[ModuleCall], paths: Sequence[str], common: Activation
) -> dict[str, Activation]:
    """Return the σ of each call of a block, by the name of its site."""
    own: dict[str, Activation] = {}
    counts: Counter[str] = Counter()
    for call in calls:
        if call.path in paths:
            counts[call.path] += 1
            number = counts[call.path]
            site = call.path if number == 1 else f"{call.path}#{number}"
            own[site] = find_activation([call], gates=False) or common
    return own


def _first_samples(data: Any, batch_size: int | None, seed: int) -> tuple[Any, Any]:
    """Return the first batch that has samples, and the data with this batch still in them."""
    with torch.random.fork_rng([]):
        items = iter(batches_of(data, batch_size, seed))
        for first in map(as_tensors, items):
            if next(pieces([first], 1, None, tokens=False), None) is not None:
                return first, chain([first], items) if isinstance(data, Iterator) else data
    raise InputError("expected samples to measure, got none", parameter="data")


def _activation(sigma: Sigma) -> Activation:
    if isinstance(sigma, type) or not (callable(sigma) or isinstance(sigma, str)):
        raise InputError(
            f"expected a function or the name of an activation, got {sigma!r}; "
            "give e.g. 'relu', torch.relu or nn.ReLU()",
            parameter="sigma",
        )
    if callable(sigma):
        return Activation(getattr(sigma, "__name__", type(sigma).__name__), sigma)
    if sigma not in _SIGMAS:
        known = ", ".join(sorted(_SIGMAS))
        raise InputError(f"expected a function or one of {known}, got {sigma!r}", parameter="sigma")
    return Activation(sigma, function_of(sigma))
