"""The machinery of a watch: a function mode, hooks and exchanged code that see every call and change none."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from types import FrameType, FunctionType
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.modules import module as module_file
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from fathometer.capture.fused import is_fused, may_take_one_kernel
from fathometer.capture.layout import Layout, has_entries
from fathometer.capture.reduction import Reduction
from fathometer.capture.sites import (
    Choice,
    Site,
    composite_name,
    is_composite,
    is_plain_activation,
    module_paths,
    operator_name,
)
from fathometer.capture.traces import tensors_in
from fathometer.capture.transforms import outside
from fathometer.errors import InputError


class Log(Protocol):
    """Where the observer writes what it sees."""

    samples: int

    def site(self, module: str, operator: str, call: int, *, own: bool) -> Site:
        """The site of that call, a new one if it has not been seen before."""

    def laid(self, site: Site, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """A reduced pair, put where it will stay if the pass ends well."""

    def keep(self, site: Site, x: Tensor, y: Tensor) -> None:
        """Keep a reduced pair."""


@dataclass
class _Frame:
    """A module at work."""

    path: str
    own: bool  # the module is an activation and nothing else
    relu6: bool = False  # which calls hardtanh
    guard: Any = None  # keeps torch functions out of sight inside attention, which would take another way


@dataclass
class _Opened:
    """A module that is measured as a whole, between its beginning and its end."""

    site: Site | None
    x: Tensor | None
    quiet: bool  # the calls inside are not sites of their own


class Observer:
    """Follows a network through its forward passes and writes the pairs of chosen sites to a log."""

    def __init__(
        self, model: nn.Module, choice: Choice, reduction: Reduction, log: Log, *, gradients: bool = False
    ) -> None:
        self._model, self._choice, self._reduction, self._log = model, choice, reduction, log
        self._paths = module_paths(model)
        self._thread = threading.get_ident()
        self._calls: Counter[tuple[str, str, bool]] = Counter()
        self._frames: list[_Frame] = []
        self._opened: list[_Opened] = []
        self._depth = self._quiet = self._fused = 0
        self._seen: list[tuple[Site, Tensor, Tensor]] = []  # of this pass
        self._paused = False
        self._caller: FrameType | None = None  # who runs the network
        self._trouble: BaseException | None = None  # that was being handled when the pass began
        self._layout = Layout(reduction, gradients=gradients)

    def hooks(self) -> Iterator[Callable[[], Any]]:
        """Put the hooks in place, one after the other, and give what takes each away."""
        yield register_module_forward_pre_hook(self._enter).remove
        yield partial(_remove, register_module_forward_hook(self._exit, with_kwargs=True, always_call=True))
        for module in self._paths:
            quiet = is_composite(module, self._choice.composites)
            if quiet or module in self._choice.modules:
                opened = partial(self._open, quiet=quiet)
                yield module.register_forward_pre_hook(opened, with_kwargs=True, prepend=True).remove
                yield module.register_forward_hook(partial(self._close, quiet=quiet), always_call=True).remove
        self._own_hooks = (  # last, so that they begin before all others and end after them
            self._model.register_forward_pre_hook(self._begin, with_kwargs=True, prepend=True),
            self._model.register_forward_hook(self._end, always_call=True),
        )
        yield from (handle.remove for handle in self._own_hooks)

    @property
    def is_off(self) -> bool:
        """Whether what is called now is none of the network's business."""
        return not self._depth or self._paused or threading.get_ident() != self._thread

    def _begin(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The network starts."""
        if self._paused or threading.get_ident() != self._thread:
            return
        if self._depth and not _is_running(self._caller):
            self.leave()  # an interrupt has ended the last pass, and no hook was told
        self._depth += 1
        if self._depth > 1:
            return
        self._caller, self._trouble = sys._getframe(1), sys.exc_info()[1]
        with torch._C.DisableTorchFunction():
            self._layout.begin(self._model, args, kwargs, self._log.samples)
        self._frames.append(_Frame("", is_plain_activation(self._model)))

    def _end(self, *_: Any) -> None:
        """The network has ended, well or with an exception: then what it gave does not count."""
        if self.is_off:
            return
        if self._depth == 1 and sys.exc_info()[1] is self._trouble:
            self._log.samples += self._layout.scene.samples
            for site, x, y in self._seen:
                self._log.keep(site, x, y)
        self._depth -= 1
        if not self._depth:
            self.leave()

    def leave(self) -> None:
        """No pass is under way; also after an exception that skipped the hooks."""
        for frame in reversed(self._frames):
            if frame.guard is not None:
                frame.guard.__exit__(None, None, None)
        for list_ in (self._frames, self._opened, self._seen):
            list_.clear()
        self._calls.clear()
        self._depth = self._quiet = self._fused = 0
        self._caller = self._trouble = None
        self._layout.end()

    def _enter(self, module: nn.Module, _: Any) -> None:
        """A module of the network starts (the global hook comes before its own)."""
        path = self._paths.get(module)
        if self.is_off or path is None or module is self._model:
            return
        frame = _Frame(path, is_plain_activation(module), isinstance(module, nn.ReLU6))
        if isinstance(module, nn.MultiheadAttention):
            frame.guard = torch._C.DisableTorchFunction()
            frame.guard.__enter__()
        self._fused += is_fused(module)
        self._frames.append(frame)

    def _exit(self, module: nn.Module, args: Any, *rest: Any) -> Any:
        *kwargs, output = rest  # after an exception torch leaves the keywords out
        if self.is_off or module not in self._paths:
            return None
        if module is not self._model:
            guard = self._frames.pop().guard
            if guard is not None:
                guard.__exit__(None, None, None)
            self._fused -= is_fused(module)
        if not is_fused(module) or self._fused or output is None or not may_take_one_kernel(module):
            return None
        with self._hooks_aside() if module is self._model else nullcontext():
            return self._unwatched(module.forward, *args, **(kwargs[0] if kwargs else {}))

    @contextmanager
    def _hooks_aside(self) -> Iterator[None]:
        """A fused layer takes the slow way while there are hooks on it."""
        before, after = self._own_hooks
        pre_hooks, hooks = self._model._forward_pre_hooks, self._model._forward_hooks
        all_pre_hooks, all_hooks = dict(pre_hooks), dict(hooks)
        del pre_hooks[before.id], hooks[after.id]
        try:
            yield
        finally:
            for now, then in ((pre_hooks, all_pre_hooks), (hooks, all_hooks)):
                now.clear()
                now.update(then)

    def _unwatched(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result as it is without a watch."""
        self._paused = True
        try:
            with torch._C.DisableTorchFunction():
                return function(*args, **kwargs)
        finally:
            self._paused = False

    def _open(self, module: nn.Module, args: Any, kwargs: Any, *, quiet: bool) -> None:
        """A composite activation, or a module that is measured as a whole, starts."""
        if self.is_off:
            return
        site, x = None, None
        given = next(tensors_in((args, kwargs)), None)
        measurable = given is not None and (self._layout.is_data(given) if quiet else has_entries(given))
        if given is not None and measurable and not self._quiet:
            operator = composite_name(module) if quiet else type(module).__name__
            site = self._site(self._paths[module], operator, own=True)
            if self._choice.wanted(site):
                with torch._C.DisableTorchFunction():
                    x = self._layout.reduced(given, site)
        self._opened.append(_Opened(site, x, quiet))
        self._quiet += quiet

    def _close(self, module: nn.Module, _: Any, output: Any, *, quiet: bool) -> None:
        if self.is_off or not self._opened:
            return
        opened = self._opened.pop()
        self._quiet -= quiet
        result = next(tensors_in(output), None)
        if opened.site is None or opened.x is None or result is None or not has_entries(result):
            return
        with torch._C.DisableTorchFunction(), self._layout.graph():
            y: Tensor | None
            if not self._reduction.pool_first:
                y = self._layout.reduced(result, opened.site)
            elif quiet:
                pooled = opened.x.to(result.dtype, copy=True)  # which the call may overwrite
                y = self._unwatched(module.forward, pooled).to(opened.x.dtype)
            else:
                raise InputError(
                    f"{opened.site}: pooling first is defined for activations, not for whole modules"
                )
            if y is not None:
                self._seen.append((opened.site, *self._log.laid(opened.site, opened.x, y)))

    def on_map(self, original: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`vmap` takes an axis away from what it runs over (`torch._functorch.vmap`)."""
        batched = original(*args, **kwargs)
        if self._paused or threading.get_ident() != self._thread:
            return batched
        axes, tensors, level, _ = args
        with torch._C.DisableTorchFunction():
            self._layout.enter_map(axes, tensors, level, batched)
        return batched

    def on_function(self, original: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function that the user named is called."""
        if self.is_off or self._quiet:
            return original(*args, **kwargs)

        def quietly(*args: Any, **kwargs: Any) -> Any:
            self._quiet += 1
            try:
                return original(*args, **kwargs)
            finally:
                self._quiet -= 1

        return self._call(original.__name__, quietly, args, kwargs)

    def on_torch_function(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A torch function is called by the network."""
        operator = operator_name(function)
        if operator in self._choice.operators and not self._quiet:
            output = self._call(operator, function, args, kwargs)
        else:
            output = function(*args, **kwargs)
        self._layout.traces.note(operator, args, kwargs, output)
        return output

    def _call(
        self, operator: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Call the activation once; what goes in is reduced before, since the call may overwrite it."""
        given = next(tensors_in((args, kwargs)), None)
        if given is None or not self._layout.is_data(given):
            return function(*args, **kwargs)
        frame = self._frames[-1]
        site = self._site(frame.path, "relu6" if frame.relu6 else operator, own=frame.own)
        if not self._choice.wanted(site):
            return function(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            x = self._layout.reduced(given, site)
        facts = self._layout.traces.of(given)
        output = function(*args, **kwargs)
        result = next(tensors_in(output), None)
        if x is None or result is None or not has_entries(result):
            return output
        with torch._C.DisableTorchFunction(), self._layout.graph():
            y: Tensor | None
            if self._reduction.pool_first:
                pooled = x.to(given.dtype, copy=True)  # the call may overwrite this, too
                with outside():
                    pooled = self._unwatched(
                        function, *_replaced(args, given, pooled), **_replaced(kwargs, given, pooled)
                    )
                y = next(tensors_in(pooled)).to(x.dtype)
            else:
                y = self._layout.reduced(result, site, facts)
            if y is not None:
                self._seen.append((site, *self._log.laid(site, x, y)))
        return output

    def _site(self, path: str, operator: str, *, own: bool) -> Site:
        key = (path, operator, own)
        self._calls[key] += 1
        return self._log.site(path, operator, self._calls[key], own=own)


def _remove(handle: RemovableHandle) -> None:
    """Take a hook of all modules away; torch forgets to forget that it wanted keywords."""
    handle.remove()
    module_file._global_forward_hooks_with_kwargs.pop(handle.id, None)


def _is_running(frame: FrameType | None) -> bool:
    current: FrameType | None = sys._getframe()
    while current is not None and current is not frame:
        current = current.f_back
    return current is not None


def _replaced(values: Any, old: Tensor, new: Tensor) -> Any:
    if isinstance(values, dict):
        return {key: new if value is old else value for key, value in values.items()}
    return tuple(new if value is old else value for value in values)


class Calls(TorchFunctionMode):
    """Shows every call of a torch function to the observer."""

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self._observer = observer

    def __torch_function__(
        self,
        function: Callable[..., Any],
        _: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if self._observer.is_off:
            return function(*args, **(kwargs or {}))
        return self._observer.on_torch_function(function, args, kwargs or {})
