"""Watch a network: every activation call of a forward pass becomes a site with its reduced pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import nn

from fathometer.capture.intercept import eager, intercepted
from fathometer.capture.observer import Observer
from fathometer.capture.pairs import Watch, Widths
from fathometer.capture.parts import Residual
from fathometer.capture.reduce import Pooling, Reduction
from fathometer.capture.sites import SiteFilter, choose_sites, unwrapped
from fathometer.errors import InputError, check_choice, check_whole


@contextmanager
def watch(
    model: nn.Module,
    *,
    sites: SiteFilter | Iterable[SiteFilter] | None = None,
    activations: Sequence[type[nn.Module] | Callable[..., Any]] = (),
    reduction: Reduction | Pooling = "mean",
    capacity: int | None = None,
    widths: Widths = "equal",
    residual: Residual = "without",
    gradients: bool = False,
) -> Iterator[Watch]:
    """See the activation calls of a network while it runs; its outputs stay the same, bit for bit.

    Args:
        model: any network. The insides of `torch.compile` and `DistributedDataParallel` are watched, eagerly.
        sites: which calls to keep: patterns of names, operators, predicates; parts of a transformer (`mlp`,
            `attention`, `block`), which the first pass searches for; or whole modules (`SiteFilter`). A
            pattern that matches no call is an error, raised when `pairs` are read.
        activations: classes and functions of your own that are activations, each call of which counts once.
        reduction: how tensors become matrices, a `Reduction` or the name of its pooling.
        capacity: keep at most so many samples of a site, in memory that is used again after `clear`.
        widths: `"equal"` leaves out whole modules that change the number of features, `"any"` keeps them.
        residual: whether the pairs of parts have the residual sum: `"without"`, `"with"` or `"both"`.
        gradients: pairs are part of the network's graph, so that a loss can be made of them. Until `clear`,
            they keep it alive. Passes with gradients and passes under `no_grad` cannot be mixed: `pairs`
            refuses them.

    Example:
        >>> import torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        >>> with watch(model) as record:
        ...     output = model(torch.randn(16, 4))
        >>> [(site.name, list(pair.x.shape)) for site, pair in record.pairs.items()]
        [('1', [16, 8])]
    """
    check_choice("widths", widths, Widths)
    check_choice("residual", residual, Residual)
    capacity = None if capacity is None else check_whole("capacity", capacity, 1)
    plain = unwrapped(model)
    choice = choose_sites(plain, sites, activations)
    how = reduction if isinstance(reduction, Reduction) else Reduction(reduction)
    if choice.parts and how.pool_first:
        raise InputError("pooling first is defined for activations, not for parts", parameter="reduction")
    within_range = how.pooling != "sum" or how.pool_first
    record = Watch(choice, capacity, widths, gradients=gradients, within_range=within_range)
    observer = Observer(plain, choice, how, record, residual)
    with ExitStack() as stack:
        stack.enter_context(eager())
        for function in choice.functions:
            stack.enter_context(intercepted(function, partial(observer.on_function, function.__name__)))
        stack.enter_context(observer.following())
        yield record
