"""Make compiled parts run eagerly, and see calls of a user's own functions.

Both are settings of the whole process. Watches may overlap, in one thread or in several, so each setting ends
with the last watch that needs it.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any, cast

import torch

_DISABLED = "TORCHDYNAMO_DISABLE"
_lock = threading.RLock()
_watches: list[None] = []  # one entry for each `eager` that is open
_undo: list[Callable[[], object]] = []  # ends what was done for all of them
_stances: list[object] = []


@contextmanager
def eager() -> Iterator[None]:
    """Run compiled modules and functions as they were written, so that their calls can be seen."""
    with _lock:
        if not _watches:
            _begin()
        _watches.append(None)
    try:
        force_eager()
        yield
    finally:
        with _lock:
            _watches.pop()
            if not _watches:
                _stances.clear()
                while _undo:
                    _undo.pop()()


def _begin() -> None:
    warnings.filterwarnings("ignore", ".*torch.compile.*global hooks", UserWarning)
    _undo.append(partial(_remove_filter, warnings.filters[0]))
    if "torch._dynamo" not in sys.modules and _DISABLED not in os.environ:
        os.environ[_DISABLED] = "1"  # `torch.compile` then gives back what it is given
        _undo.append(partial(os.environ.pop, _DISABLED, None))


def force_eager() -> None:
    """Make compiled code run eagerly, if there is a compiler; loading it would take a second."""
    if _stances or "torch._dynamo" not in sys.modules:
        return
    with _lock:
        if not _stances:
            stance = torch.compiler.set_stance("force_eager")
            _stances.append(stance)
            _undo.append(partial(stance.__exit__, None, None, None))


def _remove_filter(entry: Any) -> None:
    if entry in warnings.filters:
        cast("list[Any]", warnings.filters).remove(entry)


@contextmanager
def intercepted(function: FunctionType, handler: Callable[..., Any]) -> Iterator[None]:
    """Send every call of a user's Python function to `handler(original, *args, **kwargs)`."""
    with _lock:
        interception = _interceptions.setdefault(function, _Interception(function))
        interception.add(handler)
    try:
        yield
    finally:
        with _lock:
            interception.remove(handler)
            if not interception.handlers:
                del _interceptions[function]


class _Interception:
    """The calls of one function, sent through the handlers of all watches that are open.

    A function is referred to from modules, classes, closures and attributes. All of them share the function
    object, so its code is replaced until the last of these watches ends.
    """

    def __init__(self, function: FunctionType) -> None:
        self._function, self._code = function, function.__code__
        self._original = FunctionType(
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        self._original.__kwdefaults__ = function.__kwdefaults__
        self.handlers: list[Callable[..., Any]] = []

    def add(self, handler: Callable[..., Any]) -> None:
        """Send calls to one more handler."""
        self.handlers.append(handler)
        template = _forward.__code__
        constants = tuple(self if value == "interception" else value for value in template.co_consts)
        self._function.__code__ = template.replace(
            co_consts=constants, co_freevars=self._code.co_freevars, co_name=self._code.co_name
        )

    def remove(self, handler: Callable[..., Any]) -> None:
        """Send calls to one handler less; after the last, the function has its own code again."""
        self.handlers.remove(handler)
        if not self.handlers:
            self._function.__code__ = self._code

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
