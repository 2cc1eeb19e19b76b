"""Make compiled parts run eagerly, and see and repeat calls of functions.

Whether code is compiled, and what a function does, are settings of the whole process. Watches may overlap, in
one thread or in several, so each setting ends with the last watch that needs it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

_DISABLED = "TORCHDYNAMO_DISABLE"
_lock = threading.RLock()


class _Eager:
    """Counts the watches that need compiled code to run as it was written."""

    watches = 0
    has_stance = False
    undo = ExitStack()


@contextmanager
def eager() -> Iterator[None]:
    """Run compiled modules and functions as they were written, so that their calls can be seen."""
    with _lock:
        if not _Eager.watches and "torch._dynamo" not in sys.modules and _DISABLED not in os.environ:
            os.environ[_DISABLED] = "1"  # `torch.compile` then gives back what it is given
            _Eager.undo.callback(os.environ.pop, _DISABLED, None)
        _Eager.watches += 1
    try:
        force_eager()
        yield
    finally:
        with _lock:
            _Eager.watches -= 1
            if not _Eager.watches:
                _Eager.undo.close()
                _Eager.has_stance = False


def force_eager() -> None:
    """Make compiled code run eagerly, if there is a compiler; loading it would take a second."""
    if _Eager.has_stance or "torch._dynamo" not in sys.modules:
        return
    with _lock:
        if not _Eager.has_stance:
            _Eager.has_stance = True
            _Eager.undo.enter_context(torch.compiler.set_stance("force_eager"))


@contextmanager
def intercepted(function: FunctionType, handler: Callable[..., Any]) -> Iterator[None]:
    """Send every call of a user's Python function to `handler(original, *args, **kwargs)`."""
    with _lock:
        if function not in _interceptions:
            _interceptions[function] = _Interception(function)
        interception = _interceptions[function]
        interception.handlers.append(handler)
    try:
        yield
    finally:
        with _lock:
            interception.handlers.remove(handler)
            if not interception.handlers:
                function.__code__ = interception.code
                del _interceptions[function]


def call_on(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], old: Tensor, new: Tensor
) -> Any:
    """Make the same call on another tensor."""
    return function(
        *(new if value is old else value for value in args),
        **{key: new if value is old else value for key, value in kwargs.items()},
    )


class _Interception:
    """The calls of one function, sent through the handlers of all watches that are open.

    A function is referred to from modules, classes, closures and attributes. All of them share the function
    object, so its code is replaced until the last of these watches ends.
    """

    def __init__(self, function: FunctionType) -> None:
        self.code = function.__code__
        self.handlers: list[Callable[..., Any]] = []
        self._original = FunctionType(
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        self._original.__kwdefaults__ = function.__kwdefaults__
        template = _forward.__code__
        constants = tuple(self if value == "interception" else value for value in template.co_consts)
        function.__code__ = template.replace(
            co_consts=constants, co_freevars=self.code.co_freevars, co_name=self.code.co_name
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function as it was, through all handlers."""
        call: Callable[..., Any] = self._original
        for handler in tuple(self.handlers):
            call = partial(handler, call)
        return call(*args, **kwargs)


_interceptions: dict[FunctionType, _Interception] = {}


def _forward(*args: Any, **kwargs: Any) -> Any:
    """Serve as the code of an intercepted function; the text is replaced by the interception itself."""
    interception: Any = "interception"
    return interception(*args, **kwargs)
