"""Find the calls of a network that can be replaced, in one forward pass."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from fathometer.capture import Reduction, Site, SiteFilter, Watch, unwrapped, watch
from fathometer.capture.axes import has_entries, tensors_in
from fathometer.capture.intercept import eager, intercepted
from fathometer.capture.observer import Observer
from fathometer.capture.passes import Frame, Pass
from fathometer.capture.reduce import Reduced
from fathometer.capture.sites import PARTS, SiteChoice, choose_sites, is_plain_activation
from fathometer.errors import InputError, first_line, join_names
from fathometer.linearizing.maps import MAPS
from fathometer.linearizing.slots import Replacer, Slot, operator_at, replaced_by, replacer_of


class _Search(Observer):
    """Finds the slots of a network in one forward pass, which computes what it did before."""

    def __init__(self, model: nn.Module, choice: SiteChoice) -> None:
        self.record = Watch(choice, None, "any", gradients=False, within_range=False)
        super().__init__(model, choice, Reduction("flatten"), self.record)
        self.found: dict[Site, Slot] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._opened: dict[Site, tuple[Tensor, int, int]] = {}

    def _call(
        self,
        state: Pass,
        operator: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        frame, given = state.frames[-1], next(tensors_in((args, kwargs)), None)
        operator = operator_at(frame, operator)
        self._counts[frame.path, operator] += 1
        if given is None or not self._is_data(state, given):
            return function(*args, **kwargs)
        is_module = is_plain_activation(frame.module)
        site = self._site(state, frame.path, operator, is_module=is_module, given=given)
        if not self._choice.includes(site):
            return function(*args, **kwargs)
        self._reduced(state, given, site)  # refuses torch.vmap
        axis = state.tensors.facts_of(given).channel_axis(given.ndim)
        output = function(*args, **kwargs)
        result = next(tensors_in(output), None)
        if result is not None and has_entries(result):
            number = self._counts[frame.path, operator]
            self._add(state, site, number, given.shape, axis, output, axis)
            self.found[site].in_place = result is given
        return output

    def count_calls(self, site: Site) -> int:
        """Return how often the module of a site was called."""
        return max(self._counts[site.module, site.operator], self._counts[site.module, ""])

    def _open(self, state: Pass, frame: Frame, given: Tensor | None) -> None:
        self._counts[frame.path, ""] += 1
        super()._open(state, frame, given)
        if frame.measured is not None and given is not None:
            site = frame.measured[0]
            axis = state.tensors.facts_of(given).channel_axis(given.ndim)
            self._opened[site] = given, axis, self._counts[frame.path, ""]

    def _exit(self, module: nn.Module, args: Any, output: Any) -> None:
        state = self._running
        frame = state.frames[-1] if state is not None and module in self._paths else None
        super()._exit(module, args, output)
        if state is None or frame is None or frame.measured is None:
            return
        given, axis, number = self._opened.pop(frame.measured[0])
        result = next(tensors_in(output), None)
        after = axis if result is None else state.tensors.facts_of(result).channel_axis(result.ndim)
        self._add(state, frame.measured[0], number, given.shape, axis, output, after)

    def _close(self, state: Pass, module: nn.Module, site: Site, x: Reduced, result: Tensor | None) -> None:
        pass

    def _add(
        self, state: Pass, site: Site, number: int, given: torch.Size, axis: int, output: Any, after: int
    ) -> None:
        reason = ""
        if not isinstance(output, Tensor):
            reason = f"it returns a {type(output).__name__}; only one tensor can be replaced"
        elif _positions(output.shape, after) != _positions(given, axis):
            reason = f"its positions change ({list(given)} in, {list(output.shape)} out)"
        shapes = given, given if reason else output.shape
        widths = [1 if len(shape) == 1 else shape[i] for shape, i in zip(shapes, (axis, after), strict=True)]
        axes = [-1 if i == len(given) - 1 else i for i in (axis, after)]
        elements = given.numel() // max(state.info.samples, 1)
        self.found[site] = Slot(
            site, number, (widths[0], widths[1]), (axes[0], axes[1]), elements, reason=reason
        )


def _positions(shape: torch.Size, axis: int) -> list[int]:
    return [length for index, length in enumerate(shape) if index != axis]


def copied(model: nn.Module) -> nn.Module:
    """Return a copy of a network in which nothing is compiled."""
    try:
        network = copy.deepcopy(unwrapped(model))
    except (RuntimeError, ValueError) as error:  # weights without a shape, or of a graph
        raise InputError(
            f"this network cannot be copied ({first_line(error)}); remove weight_norm with "
            "torch.nn.utils.remove_weight_norm, or run a lazy network once",
            parameter="model",
        ) from error
    for module in list(network.modules()):
        for name, child in module._modules.items():
            if child is not None and type(child).__name__ == "OptimizedModule":
                module._modules[name] = child._orig_mod  # type: ignore[assignment]
    return network


def find_slots(
    network: nn.Module,
    run: Callable[[], Any],
    sites: SiteFilter | Iterable[SiteFilter] | None = None,
    activations: Sequence[type[nn.Module] | Callable[..., Any]] = (),
) -> Replacer:
    """Find the calls of a network that can be replaced, and make them slots, which change nothing yet.

    Calls that have been replaced before stay so, and are not among them.

    Args:
        network: it is changed: hooks stay on it.
        run: makes one forward pass.
        sites: which calls, as for `fathometer.watch`; parts of a transformer must be modules of their own. If
            all are names of calls, they stand for these alone: `act` is not `act#2`.
        activations: classes and functions of your own that are activations.

    Raises:
        InputError: if a pattern matches no call, or if there is none.
    """
    listed = [sites] if isinstance(sites, str | type) or callable(sites) else sites
    wanted = None if listed is None else _without_parts(network, run, list(listed))
    choice, earlier = choose_sites(network, wanted, activations), replacer_of(network)
    parts = (path for path, module in network.named_modules() if path and replacer_of(module) is not None)
    if part := next(parts, None):
        raise InputError(
            f"its part {part} was linearized before; give that part alone, or the original network",
            parameter="model",
        )
    replaced = [] if earlier is None else earlier.slots
    if earlier is not None:
        choice = earlier.merged(choice)
    search = _Search(network, choice)
    with ExitStack() as stack:
        # calls are counted as they were written; a module that was replaced as a whole may be empty
        stack.enter_context(replaced_by({slot: None for slot in replaced if slot.site.kind != "module"}))
        stack.enter_context(eager())
        for function in choice.functions:
            stack.enter_context(intercepted(function, partial(search.on_function, function.__name__)))
        stack.enter_context(search.following())
        run()
    choice.check_patterns(search.record.called)
    for slot in search.found.values():
        slot.is_only = slot.site.is_module and search.count_calls(slot.site) == 1
    called = {site.name for site in search.record.called}
    calls = [slot.site for slot in replaced if slot.site.kind != "module"]
    if hidden := next((site for site in calls if site.name not in called), None):
        raise InputError(
            f"{hidden}, which was replaced before, is inside one of these activations; leave that one out",
            parameter="activations",
        )
    every = sorted(search.found.values(), key=lambda slot: slot.site.order)
    found = {slot.site.name: slot for slot in every if MAPS not in slot.site.module.split(".")}
    if wanted and found.keys() >= set(map(str, wanted)):  # names of calls, not of modules
        found = {name: slot for name, slot in found.items() if name in wanted}
    done = {slot.site.name for slot in replaced}
    slots = [slot for name, slot in found.items() if name not in done]
    if not slots:
        if found:
            raise InputError(f"{join_names([*found], 3)}: already replaced", parameter="sites")
        known = ", ".join(site.name for site in search.record.called[:8])
        if not known:
            raise InputError(
                "no activation is called that can be seen (those of nn.LSTM and nn.GRU are not); name "
                "functions or classes of your own that are activations",
                parameter="activations",
            )
        raise InputError(f"no call to replace; the activation calls are: {known}", parameter="sites")
    if earlier is not None:
        earlier.remove()
    return Replacer(network, choice, [*replaced, *slots])


def _without_parts(network: nn.Module, run: Callable[[], Any], sites: list[Any]) -> list[Any]:
    """Replace words such as `mlp` by the modules that they stand for."""
    paths = {path for path, _ in network.named_modules()}
    words = [item for item in sites if item in PARTS and item not in paths]
    if not words:
        return sites
    with torch.no_grad(), watch(network, sites=words, widths="any") as record:
        run()
    missing = [site.name for site in record.sites if site.module not in paths]
    if missing:
        raise InputError(
            f"{missing[0]}: this part is not a module of its own, and cannot be replaced; give module:NAME",
            parameter="sites",
        )
    return [
        *(item for item in sites if item not in words),
        *(f"module:{site.module}" for site in record.sites),
    ]
