"""Watch a network: every activation call of a forward pass becomes a site with its reduced pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import Any, Literal, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch._functorch import vmap

from fathometer.capture.functions import intercepted
from fathometer.capture.observer import Calls, Observer
from fathometer.capture.pairs import Bounded, Growing, Pair
from fathometer.capture.reduction import Pooling, Reduction
from fathometer.capture.sites import Choice, Site, SiteFilter, choose
from fathometer.capture.unwrap import eager, unwrapped
from fathometer.errors import InputError

Widths: TypeAlias = Literal["equal", "any"]

_BEGIN_MAP = cast("FunctionType", vmap._create_batched_inputs)  # where `vmap` takes axes away


@contextmanager
def watch(
    model: nn.Module,
    *,
    sites: SiteFilter | Iterable[SiteFilter] | None = None,
    activations: Sequence[type[nn.Module] | Callable[..., Any]] = (),
    reduction: Reduction | Pooling = "mean",
    capacity: int | None = None,
    widths: Widths = "equal",
    gradients: bool = False,
) -> Iterator[Watch]:
    """See the activation calls of a network while it runs; it computes what it computes otherwise.

    Args:
        model: any network. The insides of `torch.compile` and `DistributedDataParallel` are watched, eagerly.
        sites: which calls to keep: patterns of names, operators, predicates; or whole modules (`SiteFilter`).
        activations: classes and functions of your own that are activations, each call of which counts once.
        reduction: how tensors become matrices, a `Reduction` or the name of its pooling.
        capacity: at most so many samples are kept of a site, in memory that is used again after `clear`.
        widths: `"equal"` leaves out whole modules that change the number of features, `"any"` keeps them.
        gradients: pairs are part of the network's graph, so that a loss can be made of them. Until `clear`,
            they keep it alive. Passes with gradients and passes under `no_grad` are not put together:
            `pairs` refuses them.

    Example:
        >>> import torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        >>> with watch(model) as seen:
        ...     output = model(torch.randn(16, 4))
        >>> [(site.name, list(pair.x.shape)) for site, pair in seen.pairs.items()]
        [('1', [16, 8])]
    """
    plain = unwrapped(model)
    choice = choose(plain, sites, activations)
    seen = Watch(choice, capacity, widths, gradients=gradients)
    how = reduction if isinstance(reduction, Reduction) else Reduction(reduction)
    observer = Observer(plain, choice, how, seen, gradients=gradients)
    with ExitStack() as stack:
        stack.enter_context(eager())
        stack.enter_context(intercepted(_BEGIN_MAP, observer.on_map))
        for function in choice.functions:
            stack.enter_context(intercepted(function, observer.on_function))
        for remove in observer.hooks():
            stack.callback(remove)
        stack.callback(observer.leave)
        stack.enter_context(Calls(observer))
        yield seen


class Watch:
    """What has been seen: `sites` in order of first call, and `pairs`, which add up over forward passes.

    Attributes:
        samples: how many inputs the network was given.
        unequal: modules that were asked for but whose input and output differ in shape.
    """

    def __init__(
        self,
        choice: Choice,
        capacity: int | None = None,
        widths: Widths = "equal",
        *,
        gradients: bool = False,
    ) -> None:
        self.samples = 0
        self.unequal: dict[str, str] = {}
        self._choice, self._capacity, self._widths = choice, capacity, widths
        self._gradients = gradients
        self._known: dict[tuple[str, str, int, bool], Site] = {}
        self._collected: dict[Site, Growing | Bounded] = {}
        self._modes: dict[Site, set[bool]] = {}  # whether its passes ran with gradients

    @property
    def sites(self) -> tuple[Site, ...]:
        """The sites that are chosen, in order of their first call."""
        return tuple(site for site in self._known.values() if self._choice.wanted(site))

    @property
    def called(self) -> tuple[Site, ...]:
        """All calls that could have been chosen."""
        return tuple(self._known.values())

    @property
    def pairs(self) -> dict[Site, Pair]:
        """The pair of every site, over all forward passes since the beginning or the last `clear`."""
        mixed = [site for site, modes in self._modes.items() if len(modes) > 1]
        if mixed:
            raise InputError(
                f"{mixed[0]}: expected passes with gradients, got one under no_grad among them; validate "
                "outside of the `with` block, or `clear` before and after"
            )
        ordered = sorted(self._collected.items(), key=lambda item: item[0].order)
        return {site: collected.pair for site, collected in ordered if len(collected)}

    @property
    def graphless(self) -> tuple[Site, ...]:
        """With `gradients`, the sites that are kept of a pass under `no_grad`."""
        return tuple(site for site, modes in self._modes.items() if False in modes)

    def clear(self) -> None:
        """Forget the pairs; sites and the count of samples stay."""
        for collected in self._collected.values():
            collected.clear()
        self._modes.clear()

    def site(self, module: str, operator: str, call: int, *, own: bool) -> Site:
        """The site of that call, a new one if it has not been seen before."""
        key = (module, operator, call, own)
        if key not in self._known:
            self._known[key] = Site(module, operator, call, len(self._known), own)
        return self._known[key]

    def laid(self, site: Site, x: Tensor, y: Tensor) -> Pair:
        """The pair where `keep` will have it: with a capacity, no pass is strewn with small tensors."""
        return self._collector(site).laid(Pair(x, y)) if self._fits(x, y) else Pair(x, y)

    def keep(self, site: Site, x: Tensor, y: Tensor) -> None:
        """Add the pair of one more forward pass."""
        if not self._fits(x, y):
            self.unequal[site.name] = f"{list(x.shape)} in, {list(y.shape)} out"
            return
        collector = self._collector(site)
        before = len(collector)
        try:
            collector.add(Pair(x, y))
        except InputError as error:
            raise InputError(f"{site}: {error}") from error
        if self._gradients and len(collector) > before:
            mode = torch.is_grad_enabled() or x.requires_grad or y.requires_grad
            self._modes.setdefault(site, set()).add(mode)

    def _fits(self, x: Tensor, y: Tensor) -> bool:
        return len(x) == len(y) and (self._widths == "any" or x.shape == y.shape)

    def _collector(self, site: Site) -> Growing | Bounded:
        if site not in self._collected:
            if self._capacity is None or self._gradients:  # memory that is used again holds no graph
                self._collected[site] = Growing(self._capacity)
            else:
                self._collected[site] = Bounded(self._capacity)
        return self._collected[site]
