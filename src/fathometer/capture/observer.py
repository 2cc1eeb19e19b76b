"""Follow a network through its forward passes, by a function mode and by hooks that change nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from fathometer.capture.axes import Facts, TensorFacts, has_entries, is_in_vmap, tensors_in
from fathometer.capture.following import FollowedParts
from fathometer.capture.hiding import hidden, hooks_hidden, is_fused
from fathometer.capture.intercept import call_on, force_eager
from fathometer.capture.pairs import Pair, Watch
from fathometer.capture.parts import Part, Residual, Structure, search_parts
from fathometer.capture.passes import Frame, Pass, is_running
from fathometer.capture.reduce import (
    PassInfo,
    Reduced,
    Reduction,
    drawn_rows,
    pooled_resolution,
    reduce,
    reduce_relu,
)
from fathometer.capture.sites import (
    Kind,
    Site,
    SiteChoice,
    composite_name,
    is_composite,
    is_plain_activation,
    module_paths,
    operator_name,
)
from fathometer.errors import InputError

_WITHOUT_ACTIVATIONS = frozenset(
    f"torch.nn.modules.{name}"
    for name in "batchnorm container conv dropout flatten instancenorm linear normalization pooling".split()
)
_TEXTS = ("input_ids", "inputs_embeds")  # with what an encoder returned beside them, a decoder starts
_RELU: frozenset[Callable[..., Any]] = frozenset(
    {torch.relu, torch.relu_, Tensor.relu, Tensor.relu_, nn.functional.relu}
)


class Observer(TorchFunctionMode):
    """Follows a network through its forward passes and writes the pairs of chosen sites to a `Watch`."""

    _keeps_outputs = True  # also where a layer computes in one kernel, which rounds in another way

    def __init__(
        self,
        model: nn.Module,
        choice: SiteChoice,
        reduction: Reduction,
        record: Watch,
        residual: Residual = "without",
    ) -> None:
        super().__init__()
        self._residual: Residual = residual
        self._structure: Structure | None = None  # found in the first pass, if parts are asked for
        self._model, self._choice, self._reduction, self._record = model, choice, reduction, record
        self._paths = module_paths(model)
        self._composites = {module for module in self._paths if is_composite(module, choice.composites)}
        self._thread = threading.get_ident()
        self._pass: Pass | None = None
        self._paused = False

    def __deepcopy__(self, _: object) -> Observer:
        """Stay the same for the hooks of a module that is copied while it is watched."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the stack of modes, also where another watch that began later has not ended."""
        modes = [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())]
        for mode in reversed(modes):
            if mode is not self:
                torch._C._push_on_torch_function_stack(mode)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow the network as long as the context lasts."""
        with ExitStack() as stack:
            for module in filter(self._needs_hooks, self._paths):
                for handle in self._hooks(module):
                    stack.callback(handle.remove)
            stack.callback(self._leave)
            stack.enter_context(self)
            yield

    def _needs_hooks(self, module: nn.Module) -> bool:
        """Exclude torch's own layers that call no activation: hooks cost time, and most modules are such."""
        if self._choice.parts:  # which may begin and end at any module
            return True
        if module is self._model or module in self._composites or module in self._choice.modules:
            return True
        has_own_code = "forward" in vars(module) or bool(module._forward_pre_hooks)
        return has_own_code or type(module).__module__ not in _WITHOUT_ACTIVATIONS

    def _hooks(self, module: nn.Module) -> Iterator[Any]:
        yield module.register_forward_pre_hook(self._enter, with_kwargs=True, prepend=True)
        # What the user's hooks do to a module belongs to it where it is measured as a whole.
        last = module is self._model or module in self._composites or module in self._choice.modules
        last = last or bool(self._choice.parts)
        yield module.register_forward_hook(self._exit, prepend=not last, always_call=True)
        if is_fused(module) and self._keeps_outputs:
            yield module.register_forward_hook(self._compute_fused, with_kwargs=True, prepend=True)

    def __torch_function__(
        self,
        function: Callable[..., Any],
        _: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """See a call of a torch function."""
        kwargs = kwargs or {}
        state = self._running
        if state is None:
            return function(*args, **kwargs)
        operator = operator_name(function)
        if operator == "scaled_dot_product_attention":
            self._record.has_fused_attention = True
        if operator in self._choice.operators and not state.ignore_depth:
            output = self._call(state, operator, function, args, kwargs)
        elif state.parts is not None and state.parts.is_waiting:
            sources = list(tensors_in((args, kwargs)))

            def call() -> Any:
                output = function(*args, **kwargs)
                state.tensors.note(operator, args, kwargs, output)  # before a part of it is reduced
                return output

            return state.parts.call(operator, sources, state.tensors, call)
        else:
            output = function(*args, **kwargs)
        state.tensors.note(operator, args, kwargs, output)
        return output

    def on_function(self, name: str, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """See a call of a function that the user named."""
        state = self._running
        if state is None or state.ignore_depth:
            return original(*args, **kwargs)

        def call_quietly(*args: Any, **kwargs: Any) -> Any:
            state.ignore_depth += 1
            try:
                return original(*args, **kwargs)
            finally:
                state.ignore_depth -= 1

        return self._call(state, name, call_quietly, args, kwargs)

    @property
    def _running(self) -> Pass | None:
        """The pass under way; None where what is called now does not belong to it."""
        return None if self._paused or threading.get_ident() != self._thread else self._pass

    def _enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A module starts."""
        if self._paused or threading.get_ident() != self._thread or module not in self._paths:
            return  # a copy that was made during the watch has its hooks, too
        if module is self._model:
            self._begin(args, kwargs)
        if self._pass is not None:
            self._follow(self._pass, module, args, kwargs)

    def _follow(self, state: Pass, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A module of the network starts in a pass."""
        frame = Frame(module, self._paths[module])
        state.frames.append(frame)
        if kwargs.get("encoder_hidden_states") is not None and not kwargs.keys().isdisjoint(_TEXTS):
            frame.outside, state.info = state.info, replace(state.info, mask=state.info.decoder_mask)
        # of two observers, the first to enter is the first to exit: only one may hide torch functions
        if isinstance(module, nn.MultiheadAttention) and torch._C._is_torch_function_enabled():
            frame.guard = torch._C.DisableTorchFunction()
            frame.guard.__enter__()
        if state.parts is not None:
            state.parts.enter(frame.path, next(tensors_in((args, kwargs)), None))
            if state.parts.measures(frame.path):
                return
        if module in self._composites or module in self._choice.modules:
            self._open(state, frame, next(tensors_in((args, kwargs)), None))

    def _exit(self, module: nn.Module, _: Any, output: Any) -> None:
        """A module has returned, or raised."""
        state = self._running
        if state is None or module not in self._paths:
            return
        frame = state.frames.pop()
        if frame.guard is not None:
            frame.guard.__exit__(None, None, None)
        state.ignore_depth -= frame.ignores_calls
        if frame.measured is not None:
            self._close(state, module, *frame.measured, next(tensors_in(output), None))
        if state.parts is not None:
            state.parts.exit(frame.path, next(tensors_in(output), None))
        state.info = frame.outside or state.info
        if module is self._model:
            self._end(state)

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The network starts."""
        if self._pass is not None and not is_running(self._pass.caller):
            self._leave()  # an interrupt has ended the last pass, and no hook was called
        if self._pass is None:
            force_eager()  # the compiler may have been loaded since the watch began
            with torch._C.DisableTorchFunction():
                if any(map(is_in_vmap, tensors_in((args, kwargs)))):
                    raise InputError(
                        "expected a plain call of the network, got one by torch.vmap; "
                        "call it on the whole batch"
                    )
                info = PassInfo.of(args, kwargs, self._reduction.sample_axis, self._record.samples)
            # Weights are listed again for each pass: `functional_call` runs the network on others.
            weights = (
                tensor
                for module in self._paths
                for tensor in (*module._parameters.values(), *module._buffers.values())
                if tensor is not None
            )
            tensors = TensorFacts(info.samples, weights)
            if self._choice.parts and self._structure is None:
                self._structure = self._searched_parts(info, args, kwargs)
            self._pass = Pass(info, tensors, sys._getframe(2), sys.exc_info()[1])
            if self._structure is not None:
                self._pass.parts = self._followed_parts(self._pass, self._structure)
        self._pass.depth += 1

    def _searched_parts(self, info: PassInfo, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Structure:
        self._paused = True
        try:
            with hooks_hidden(self._model, Observer):
                found = search_parts(self._model, args, kwargs, info.samples, self._choice.parts)
        finally:
            self._paused = False
        if found.missing and len(found.missing) == len(self._choice.tests):  # nothing else is asked for
            raise InputError("; ".join(found.missing.values()), parameter="sites")
        self._record.left_out.update(found.missing)
        return found

    def _followed_parts(self, state: Pass, structure: Structure) -> FollowedParts:
        def site(part: Part, residual: bool) -> Site:
            facts: dict[str, Any] = {"kind": part.kind, "residual": residual}
            return self._site(state, part.path, part.operator, is_module=True, **facts)

        def reduced(tensor: Tensor, site: Site) -> Reduced:
            facts = state.tensors.facts_of(tensor)
            if facts.axis is None:  # parts consist of linear layers, which have the channels last
                facts = facts._replace(axis=tensor.ndim - 1)
            return self._reduced(state, tensor, site, facts)

        leave_out = self._record.leave_out
        return FollowedParts(structure, self._residual, site, reduced, self._stage, leave_out)

    def _end(self, state: Pass) -> None:
        """The network has returned, or raised: then nothing of the pass counts."""
        state.depth -= 1
        if state.depth:
            return
        if sys.exc_info()[1] is state.error:
            if state.parts is not None:
                state.parts.close()
            with hidden(gradients=self._record.gradients):
                self._record.commit(state.info.samples)
        self._leave()

    def _leave(self) -> None:
        """Forget the pass under way, also after an exception that skipped the hooks."""
        if self._pass is not None:
            self._pass.leave()
        self._pass = None
        self._record.discard()

    def _open(self, state: Pass, frame: Frame, given: Tensor | None) -> None:
        """A composite activation, or a module that is measured as a whole, starts."""
        composite = frame.module in self._composites
        measurable = given is not None and (self._is_data(state, given) if composite else has_entries(given))
        if given is not None and measurable and not state.ignore_depth:
            name = type(frame.module)
            operator = composite_name(name) if composite else name.__name__
            kind: Kind = "activation" if composite else "module"
            site = self._site(state, frame.path, operator, is_module=True, kind=kind, given=given)
            if self._choice.includes(site):
                frame.measured = site, self._reduced(state, given, site)
        frame.ignores_calls = composite
        state.ignore_depth += composite

    def _close(self, state: Pass, module: nn.Module, site: Site, x: Reduced, result: Tensor | None) -> None:
        if result is None or not has_entries(result):
            return
        if not self._reduction.pool_first:
            y = self._reduced(state, result, site)
        elif module in self._composites:
            y = self._pooled_first(module.forward, x.matrix, result.dtype)
        else:
            raise InputError(f"{site}: pooling first is defined for activations, not for whole modules")
        self._stage(site, x, y)

    def _call(
        self,
        state: Pass,
        operator: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Call the activation once; its input is reduced before, since the call may overwrite it."""
        given = next(tensors_in((args, kwargs)), None)
        if given is None or not self._is_data(state, given):
            return function(*args, **kwargs)
        frame = state.frames[-1]
        if isinstance(frame.module, nn.ReLU6):
            operator = "relu6"  # it calls hardtanh
        is_module = is_plain_activation(frame.module)
        site = self._site(state, frame.path, operator, is_module=is_module, given=given)
        if not self._choice.includes(site):
            return function(*args, **kwargs)
        facts = state.tensors.facts_of(given)
        with hidden(gradients=self._record.gradients):
            memory = self._record.free_rows(site, state.info.samples)
            both = function in _RELU and reduce_relu(given, facts, self._reduction, state.info, memory)
        if both:
            output = function(*args, **kwargs)
            self._stage(site, *both)
            return output
        x = self._reduced(state, given, site, facts, memory[0])
        output = function(*args, **kwargs)
        result = next(tensors_in(output), None)
        if result is None or not has_entries(result):
            return output
        if self._reduction.pool_first:
            again = partial(call_on, function, args, kwargs, given)
            y = self._pooled_first(again, x.matrix, given.dtype)
        else:
            y = self._reduced(state, result, site, facts, memory[1])
        self._stage(site, x, y)
        return output

    def _site(
        self,
        state: Pass,
        path: str,
        operator: str,
        *,
        is_module: bool,
        kind: Kind = "activation",
        residual: bool = False,
        given: Tensor | None = None,
    ) -> Site:
        key = (path, operator, is_module, residual)
        state.calls[key] += 1
        layer = None if state.parts is None else state.parts.layer
        return self._record.site(
            path,
            operator,
            state.calls[key],
            is_module=is_module,
            kind=kind,
            layer=layer,
            residual=residual,
            after_sum=given is not None and state.tensors.facts_of(given).is_sum,
        )

    def _is_data(self, state: Pass, tensor: Tensor) -> bool:
        """Whether a tensor holds samples; inside `torch.vmap` that cannot be told, and is assumed."""
        return (is_in_vmap(tensor) and tensor.is_floating_point()) or state.tensors.is_data(tensor)

    def _reduced(
        self,
        state: Pass,
        tensor: Tensor,
        site: Site,
        facts: Facts | None = None,
        memory: Tensor | None = None,
    ) -> Reduced:
        """Return the tensor as a matrix, if possible in `memory`; its facts are looked up if not given."""
        if is_in_vmap(tensor):
            raise InputError(
                f"{site}: expected a plain call, got one inside torch.vmap, which hides the samples; "
                "write the function for the whole batch, or choose other sites"
            )
        facts = facts or state.tensors.facts_of(tensor)
        with hidden(gradients=self._record.gradients):
            tokens, of_samples = state.info.tokens, facts.rows_per_sample * state.info.samples
            if tokens is not None and tensor.ndim and len(tensor) not in (of_samples, tokens):
                self._record.with_padding.add(site)
            return reduce(tensor, facts, self._reduction, state.info, site.name, memory)

    def _pooled_first(self, function: Callable[[Tensor], Any], x: Tensor, dtype: torch.dtype) -> Reduced:
        """Return σ(r(X)); the call may overwrite its input, which is a copy."""
        with hidden(gradients=self._record.gradients):
            y = next(tensors_in(self._unwatched(function, x.to(dtype, copy=True))))
            return Reduced(y.to(x.dtype), pooled_resolution(y.dtype, x.dtype))

    def _stage(self, site: Site, x: Reduced, y: Reduced) -> None:
        with hidden(gradients=self._record.gradients):
            given = x.matrix.to(y.matrix.device)  # accelerate moves inputs inside modules
            pair, rows = Pair(given, y.matrix, (x.resolution, y.resolution)), len(given)
            assert self._pass is not None
            info, room = self._pass.info, self._record.room(site)
            if rows > info.positions:  # one for each token and expert, sorted by expert
                self._record.gathered.add(site)
                if room is not None and room < rows == len(y.matrix):
                    chosen = drawn_rows(self._reduction.seed, info.first, rows, room).to(given.device)
                    pair = pair.with_sides(pair.x[chosen], pair.y[chosen])
            self._record.stage(site, pair, rows)

    def _unwatched(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return the result as it is without a watch."""
        self._paused = True
        try:
            with torch._C.DisableTorchFunction():
                return function(*args, **kwargs)
        finally:
            self._paused = False

    def _compute_fused(self, module: nn.Module, args: Any, kwargs: Any, _: Any) -> Any:
        """Return what a fused layer gives without a watch: by one kernel, which rounds in another way."""
        state = self._running
        learns = torch.is_grad_enabled() and any(weight.requires_grad for weight in module.parameters())
        if state is None or module.training or learns:
            return None
        if any(is_fused(frame.module) and frame.module is not module for frame in state.frames):
            return None  # the layer around it is computed again as a whole
        with hooks_hidden(module, Observer):
            return self._unwatched(module.forward, *args, **kwargs)
