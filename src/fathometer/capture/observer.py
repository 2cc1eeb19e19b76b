"""Follow a network through its forward passes, by a function mode and by hooks that change nothing."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch._C import _functorch
from torch.nn.modules import module as module_file
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from fathometer.capture.axes import Facts, tensors_in
from fathometer.capture.intercept import force_eager
from fathometer.capture.pairs import Pair, Watch
from fathometer.capture.reduce import Reduced, Reducer, Reduction, has_entries, resolution
from fathometer.capture.sites import (
    Choice,
    Site,
    composite_name,
    is_composite,
    is_plain_activation,
    module_paths,
    operator_name,
)
from fathometer.errors import InputError

_FUSED = (nn.TransformerEncoder.forward, nn.TransformerEncoderLayer.forward)


@dataclass
class _Frame:
    """A module that is running."""

    path: str
    own: bool  # the module is an activation and nothing else
    relu6: bool = False  # such a module calls hardtanh
    guard: Any = None  # hides torch functions inside attention, which would compute in another way


@dataclass
class _Opened:
    """A module that is measured as a whole and has not returned yet."""

    site: Site | None
    x: Reduced | None


class Observer(TorchFunctionMode):
    """Follows a network through its forward passes and writes the pairs of chosen sites to a `Watch`."""

    def __init__(
        self, model: nn.Module, choice: Choice, reduction: Reduction, seen: Watch, *, gradients: bool = False
    ) -> None:
        super().__init__()
        self._model, self._choice, self._seen, self._gradients = model, choice, seen, gradients
        self._pool_first = reduction.pool_first
        self._reducer = Reducer(reduction)
        self._paths = module_paths(model)
        self._thread = threading.get_ident()
        self._calls: Counter[tuple[str, str, bool]] = Counter()
        self._frames: list[_Frame] = []
        self._opened: list[_Opened] = []
        self._depth = self._quiet = self._fused = 0
        self._paused = False
        self._caller: FrameType | None = None  # runs the network
        self._trouble: BaseException | None = None  # was being handled when the pass began

    def __exit__(self, *_: object) -> None:
        """Leave the stack of modes, also where another watch that began later has not ended."""
        modes = [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())]
        for mode in reversed(modes):
            if mode is not self:
                torch._C._push_on_torch_function_stack(mode)

    def __torch_function__(
        self,
        function: Callable[..., Any],
        _: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """See a call of a torch function."""
        kwargs = kwargs or {}
        if self._is_off:
            return function(*args, **kwargs)
        operator = operator_name(function)
        if operator in self._choice.operators and not self._quiet:
            output = self._call(operator, function, args, kwargs)
        else:
            output = function(*args, **kwargs)
        self._reducer.traces.note(operator, args, kwargs, output)
        return output

    def on_function(self, name: str, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """See a call of a function that the user named."""
        if self._is_off or self._quiet:
            return original(*args, **kwargs)

        def quietly(*args: Any, **kwargs: Any) -> Any:
            self._quiet += 1
            try:
                return original(*args, **kwargs)
            finally:
                self._quiet -= 1

        return self._call(name, quietly, args, kwargs)

    def hooks(self) -> Iterator[Callable[[], Any]]:
        """Register the hooks, one after the other, and yield what removes each."""
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

    def leave(self) -> None:
        """Forget the pass under way, also after an exception that skipped the hooks."""
        for frame in reversed(self._frames):
            if frame.guard is not None:
                frame.guard.__exit__(None, None, None)
        for list_ in (self._frames, self._opened):
            list_.clear()
        self._calls.clear()
        self._depth = self._quiet = self._fused = 0
        self._caller = self._trouble = None
        self._seen.discard()
        self._reducer.end()

    @property
    def _is_off(self) -> bool:
        """Whether what is called now does not belong to the network."""
        return not self._depth or self._paused or threading.get_ident() != self._thread

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Compute for the watch: unseen, outside of `torch.func`, with a graph only if asked for."""
        with ExitStack() as stack:
            stack.enter_context(torch._C.DisableTorchFunction())
            stack.enter_context(torch.set_grad_enabled(self._gradients and torch.is_grad_enabled()))
            if _functorch.peek_interpreter_stack() is not None:
                from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

                stack.enter_context(temporarily_clear_interpreter_stack())
            yield

    def _begin(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The network starts."""
        if self._paused or threading.get_ident() != self._thread:
            return
        if self._depth and not _is_running(self._caller):
            self.leave()  # an interrupt has ended the last pass, and no hook was called
        self._depth += 1
        if self._depth > 1:
            return
        force_eager()  # the compiler may have been loaded since the watch began
        self._caller, self._trouble = sys._getframe(1), sys.exc_info()[1]
        with torch._C.DisableTorchFunction():
            if any(map(_is_in_vmap, tensors_in((args, kwargs)))):
                raise InputError(
                    "expected a plain call of the network, got one by torch.vmap; call it on the whole batch"
                )
            self._reducer.begin(self._model, args, kwargs, self._seen.samples)
        self._frames.append(_Frame("", is_plain_activation(self._model)))

    def _end(self, *_: Any) -> None:
        """The network has returned, or raised: then nothing of the pass counts."""
        if self._is_off:
            return
        if self._depth == 1 and sys.exc_info()[1] is self._trouble:
            with self._aside():
                self._seen.commit(self._reducer.given.samples)
        self._depth -= 1
        if not self._depth:
            self.leave()

    def _enter(self, module: nn.Module, _: Any) -> None:
        """A module of the network starts (the global hook comes before its own)."""
        path = self._paths.get(module)
        if self._is_off or path is None or module is self._model:
            return
        frame = _Frame(path, is_plain_activation(module), isinstance(module, nn.ReLU6))
        if isinstance(module, nn.MultiheadAttention):
            frame.guard = torch._C.DisableTorchFunction()
            frame.guard.__enter__()
        self._fused += _is_fused(module)
        self._frames.append(frame)

    def _exit(self, module: nn.Module, args: Any, *rest: Any) -> Any:
        *kwargs, output = rest  # after an exception torch leaves the keywords out
        if self._is_off or module not in self._paths:
            return None
        if module is not self._model:
            guard = self._frames.pop().guard
            if guard is not None:
                guard.__exit__(None, None, None)
            self._fused -= _is_fused(module)
        if not _is_fused(module) or self._fused or output is None or not _may_take_one_kernel(module):
            return None
        with self._hooks_removed() if module is self._model else nullcontext():
            return self._unwatched(module.forward, *args, **(kwargs[0] if kwargs else {}))

    @contextmanager
    def _hooks_removed(self) -> Iterator[None]:
        """Take the hooks of the network away: with them, a fused layer takes its slow way."""
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
        """Return the result as it is without a watch."""
        self._paused = True
        try:
            with torch._C.DisableTorchFunction():
                return function(*args, **kwargs)
        finally:
            self._paused = False

    def _open(self, module: nn.Module, args: Any, kwargs: Any, *, quiet: bool) -> None:
        """A composite activation, or a module that is measured as a whole, starts."""
        if self._is_off:
            return
        opened = _Opened(None, None)
        given = next(tensors_in((args, kwargs)), None)
        measurable = given is not None and (self._is_data(given) if quiet else has_entries(given))
        if given is not None and measurable and not self._quiet:
            operator = composite_name(type(module)) if quiet else type(module).__name__
            opened.site = self._site(self._paths[module], operator, own=True)
            if self._seen.is_wanted(opened.site):
                opened.x = self._reduced(given, opened.site)
        self._opened.append(opened)
        self._quiet += quiet

    def _close(self, module: nn.Module, _: Any, output: Any, *, quiet: bool) -> None:
        if self._is_off or not self._opened:
            return
        opened = self._opened.pop()
        self._quiet -= quiet
        result = next(tensors_in(output), None)
        if opened.site is None or opened.x is None or result is None or not has_entries(result):
            return
        if not self._pool_first:
            y = self._reduced(result, opened.site)
        elif quiet:
            y = self._pooled_first(module.forward, opened.x.matrix, result.dtype)
        else:
            raise InputError(
                f"{opened.site}: pooling first is defined for activations, not for whole modules"
            )
        self._stage(opened.site, opened.x, y)

    def _call(
        self, operator: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Call the activation once; its input is reduced before, since the call may overwrite it."""
        given = next(tensors_in((args, kwargs)), None)
        if given is None or not self._is_data(given):
            return function(*args, **kwargs)
        frame = self._frames[-1]
        site = self._site(frame.path, "relu6" if frame.relu6 else operator, own=frame.own)
        if not self._seen.is_wanted(site):
            return function(*args, **kwargs)
        x = self._reduced(given, site)
        facts = self._reducer.traces.of(given)
        output = function(*args, **kwargs)
        result = next(tensors_in(output), None)
        if result is None or not has_entries(result):
            return output
        if self._pool_first:
            again = partial(_call_on, function, args, kwargs, given)
            y = self._pooled_first(again, x.matrix, given.dtype)
        else:
            y = self._reduced(result, site, facts)
        self._stage(site, x, y)
        return output

    def _is_data(self, tensor: Tensor) -> bool:
        """Whether a tensor holds samples; inside `torch.vmap` that cannot be told, and is assumed."""
        return (_is_in_vmap(tensor) and tensor.is_floating_point()) or self._reducer.is_data(tensor)

    def _reduced(self, tensor: Tensor, site: Site, facts: Facts | None = None) -> Reduced:
        if _is_in_vmap(tensor):
            raise InputError(
                f"{site}: expected a plain call, got one inside torch.vmap, which hides the samples; "
                "write the function for the whole batch, or choose other sites"
            )
        with self._aside():
            return self._reducer.reduced(tensor, site.name, facts)

    def _pooled_first(self, function: Callable[[Tensor], Any], x: Tensor, dtype: torch.dtype) -> Reduced:
        """Return σ(r(X)); the call may overwrite its input, which is a copy."""
        with self._aside():
            y = next(tensors_in(self._unwatched(function, x.to(dtype, copy=True))))
            return Reduced(y.to(x.dtype), resolution(y.dtype, x.dtype))

    def _stage(self, site: Site, x: Reduced, y: Reduced) -> None:
        with self._aside():
            self._seen.stage(site, Pair(x.matrix, y.matrix, (x.resolution, y.resolution)))

    def _site(self, path: str, operator: str, *, own: bool) -> Site:
        key = (path, operator, own)
        self._calls[key] += 1
        return self._seen.site(path, operator, self._calls[key], own=own)


def _is_fused(module: nn.Module) -> bool:
    """Tell whether a layer may hide its activation in one kernel; not a subclass with another `forward`."""
    return type(module).forward in _FUSED


def _may_take_one_kernel(module: nn.Module) -> bool:
    """Tell whether the layer may use one kernel now, whose result differs by rounding."""
    learns = torch.is_grad_enabled() and any(parameter.requires_grad for parameter in module.parameters())
    return not module.training and not learns


def _is_in_vmap(tensor: Tensor) -> bool:
    while _functorch.is_functorch_wrapped_tensor(tensor):
        if _functorch.is_batchedtensor(tensor):
            return True
        tensor = _functorch.get_unwrapped(tensor)
    return False


def _is_running(frame: FrameType | None) -> bool:
    current: FrameType | None = sys._getframe()
    while current is not None and current is not frame:
        current = current.f_back
    return current is not None


def _call_on(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], old: Tensor, new: Tensor
) -> Any:
    """Make the same call on another tensor."""
    return function(
        *(new if value is old else value for value in args),
        **{key: new if value is old else value for key, value in kwargs.items()},
    )


def _remove(handle: RemovableHandle) -> None:
    """Remove a hook of all modules; torch itself does not forget that it wanted keywords."""
    handle.remove()
    module_file._global_forward_hooks_with_kwargs.pop(handle.id, None)
