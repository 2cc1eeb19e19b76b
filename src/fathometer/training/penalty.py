"""The affinity score as a loss: a term that moves chosen sites towards a target during training."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from fathometer.capture import Pair, Pooling, Reduction, Site, SiteFilter, Watch, unwrapped, watch
from fathometer.capture.sites import choose_sites
from fathometer.errors import FathometerError, InputError, as_float, check_choice, check_positive, check_whole
from fathometer.gauges import affinity
from fathometer.transport.moments import DEFAULT_RIDGE, CovarianceKind, Ridge, as_ridge


class _Goal(NamedTuple):
    """Some sites, and the score they should have."""

    name: str
    wanted: Callable[[Site], bool]
    target: float


class AffinityPenalty:
    """`weight` · mean over sites of (ρ − target)², where ρ is the affinity score of a site, Eq. (5).

    It watches the forward passes inside its `with` block. A call returns the penalty of those since the last
    call, with gradients for everything that the sites depend on, and forgets them. Call it before the
    backward pass, which frees the graph. The outputs of the network do not change. With a target of 1 the
    term is W₂(T X, Y)² / (2 Tr Σ(Y)), which is smooth also where it is 0.

    Args:
        model: the network that is trained.
        sites: activation calls or whole modules, as in `watch`; all activation calls if left out.
        target: the score to reach, from 0 to 1; or several, by sites: `{"layer1.*": 0.9, "relu": 0.6}`. Where
            several match one site, the first counts.
        weight: factor of the term; it may be changed at any time.
        reduction: how tensors become `[samples, features]`, a `Reduction` or the name of its pooling.
        activations: classes and functions of your own that are activations.
        capacity: the largest number of samples of a site that are scored, the first ones; time grows with
            its square, and faster where the assignment must be solved.
        covariance: `"ledoit-wolf"` or `"sample"`.
        ridge: as in `affinity_score`.

    Example:
        >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True), nn.Linear(16, 2))
        >>> penalty = AffinityPenalty(model, target=0.9, weight=10.0)
        >>> with penalty:
        ...     loss = model(torch.randn(64, 8)).square().mean() + penalty()
        >>> loss.backward()
        >>> list(penalty.scores)
        ['1']
    """

    def __init__(
        self,
        model: nn.Module,
        sites: SiteFilter | Iterable[SiteFilter] | None = None,
        *,
        target: float | Mapping[SiteFilter, float],
        weight: float = 1.0,
        reduction: Reduction | Pooling = "mean",
        activations: Sequence[type[nn.Module] | Callable[..., Any]] = (),
        capacity: int | None = 512,
        covariance: CovarianceKind = "ledoit-wolf",
        ridge: Ridge | float = DEFAULT_RIDGE,
    ) -> None:
        check_choice("covariance", covariance, CovarianceKind)
        capacity = None if capacity is None else check_whole("capacity", capacity, 2)
        self.weight = check_positive("weight", weight, or_zero=True)
        self._model, self._activations, self._capacity = model, activations, capacity
        self._reduction = reduction if isinstance(reduction, Reduction) else Reduction(reduction)
        self._covariance, self._ridge = covariance, as_ridge(ridge)
        chosen = _chosen(sites, target)
        every = sites is None and not isinstance(target, Mapping)
        self._sites = None if every else [cast("SiteFilter", key) for key, _ in chosen]
        plain = unwrapped(model)
        choose_sites(plain, self._sites, activations)  # refuses sites that cannot be chosen
        self._goals = [
            _Goal(repr(key), choose_sites(plain, key, activations).includes, value) for key, value in chosen
        ]
        self._unmet = list(self._goals)  # until one of their sites has been seen
        self._record: Watch | None = None
        self._samples = 0  # seen in earlier blocks
        self._stack = ExitStack()
        self._last: dict[str, Tensor] = {}
        self._warned: set[str] = set()  # sites without gradients that were named in a warning

    @property
    def scores(self) -> dict[str, float]:
        """The score of every site at the last call."""
        return {name: float(score) for name, score in self._last.items()}

    def clear(self) -> None:
        """Forget the forward passes since the last call."""
        if self._record is not None:
            self._record.clear()

    def __enter__(self) -> AffinityPenalty:
        if self._record is not None:
            raise InputError("this penalty is already watching; leave its `with` block first")
        self._record = self._stack.enter_context(
            watch(
                self._model,
                sites=self._sites,
                activations=self._activations,
                reduction=self._reduction,
                capacity=self._capacity,
                gradients=True,
            )
        )
        self._record.samples = self._samples  # so that every step draws other positions
        return self

    def __exit__(self, *_: object) -> None:
        if self._record is not None:
            self._samples = self._record.samples
            self._record.clear()  # pairs keep the graph of a step alive
            self._record = None
        self._stack.close()

    def __call__(self) -> Tensor:
        """Return the penalty of the forward passes since the last call, a tensor `[]`."""
        if self._record is None:
            raise InputError("expected a call of the penalty inside its `with` block, after a forward pass")
        self._check_sites(self._record)
        try:
            without_graph = self._record.sites_without_graph
            pairs = {site: pair for site, pair in self._record.pairs.items() if len(pair.x) > 1}
        finally:
            self._record.clear()
        _check_pairs(pairs, without_graph)
        self._warn_without_gradient(pairs)
        scores = self._scores(pairs)
        self._last = {site.name: score for site, score in zip(pairs, scores.detach(), strict=True)}
        targets = scores.new_tensor([self._target(site) for site in pairs])
        first = next(iter(pairs.values())).y
        return self.weight * (scores - targets).square().mean().to(first.device, first.dtype)

    def _scores(self, pairs: Mapping[Site, Pair]) -> Tensor:
        """Return ρ of each site, `[sites]`; those of one shape are solved together."""
        alike: dict[tuple[object, ...], list[Site]] = defaultdict(list)
        for site, (_, y) in pairs.items():
            alike[y.shape, y.device, y.dtype].append(site)
        found: dict[Site, Tensor] = {}
        for sites in alike.values():
            try:
                values = self._affinity([pairs[site] for site in sites])
            except FathometerError:
                for site in sites:
                    try:
                        self._affinity([pairs[site]])
                    except FathometerError as error:
                        raise type(error)(f"{site}: {error}") from error
                raise
            found.update(zip(sites, values, strict=True))
        device = next(iter(found.values())).device
        return torch.stack([found[site].to(device) for site in pairs])

    def _affinity(self, pairs: Sequence[Pair]) -> Tensor:
        x, y = torch.stack([pair.x for pair in pairs]), torch.stack([pair.y for pair in pairs])
        return affinity(x, y, covariance=self._covariance, ridge=self._ridge)

    def _target(self, site: Site) -> float:
        return next(goal.target for goal in self._goals if goal.wanted(site))

    def _warn_without_gradient(self, pairs: Mapping[Site, Pair]) -> None:
        """Warn once of sites that have no gradient."""
        if not torch.is_grad_enabled():
            return
        without = [site.name for site, (x, y) in pairs.items() if not (x.requires_grad or y.requires_grad)]
        new = [name for name in without if name not in self._warned]
        if new:
            self._warned.update(new)
            warnings.warn(
                f"no gradient leads from {', '.join(new)} to a weight: nothing before is trained, or the "
                "network itself turns gradients off there; such sites count in the mean without any effect, "
                "leave them out of `sites`",
                stacklevel=3,
            )

    def _check_sites(self, record: Watch) -> None:
        """Check that every choice has found a site, now or in an earlier pass, and that all have a score."""
        if record.left_out:
            shapes = "; ".join(f"{name}: {shape}" for name, shape in record.left_out.items())
            raise InputError(f"expected sites that keep the number of features, got {shapes}")
        self._unmet = [goal for goal in self._unmet if not any(map(goal.wanted, record.sites))]
        if self._unmet and record.samples > self._samples:
            what = "an activation call" if self._sites is None else f"a call of {self._unmet[0].name}"
            called = ", ".join(site.name for site in record.called) or "none"
            raise InputError(f"sites: expected {what} in the forward pass, got {called}")


def _check_pairs(pairs: Mapping[Site, Pair], without_graph: Sequence[Site]) -> None:
    if not pairs:
        raise InputError(
            "expected a forward pass of two samples or more inside the `with` block and since the last call, "
            "got none; call the network, not its `forward`, and let a loader drop its last, small batch"
        )
    if not torch.is_grad_enabled():
        return
    if without_graph:
        raise InputError(
            f"{without_graph[0]}: the forward pass ran without gradients, under no_grad; validate outside of "
            "the `with` block, or `clear` the penalty afterwards"
        )
    if not any(x.requires_grad or y.requires_grad for x, y in pairs.values()):
        raise InputError(
            f"no gradient leads from the scores of {', '.join(site.name for site in pairs)} to a weight: "
            "nothing before these sites is trained"
        )


def _chosen(
    sites: SiteFilter | Iterable[SiteFilter] | None, target: float | Mapping[SiteFilter, float]
) -> list[tuple[SiteFilter | None, float]]:
    """Return the target of every choice of sites; None stands for all of them."""
    if isinstance(target, Mapping):
        if sites is not None:
            raise InputError(
                "leave it out with a dict of targets, whose keys are the sites", parameter="sites"
            )
        return [(key, _check_target(f"target of {key!r}", value)) for key, value in target.items()]
    several = isinstance(sites, Iterable) and not isinstance(sites, str | type)
    keys = cast("Iterable[SiteFilter]", sites) if several else [cast("SiteFilter | None", sites)]
    return [(key, _check_target("target", target)) for key in keys]


def _check_target(name: str, value: object) -> float:
    number = as_float(value)
    if not 0 <= number <= 1:
        raise InputError(f"expected a number from 0 to 1, got {value!r}", parameter=name)
    return number
