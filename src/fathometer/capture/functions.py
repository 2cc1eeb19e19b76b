"""Calls of a user's own Python function, seen by whatever name it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any, TypeAlias

Handler: TypeAlias = "Callable[[FunctionType, tuple[Any, ...], dict[str, Any]], Any]"

_handlers: dict[int, tuple[FunctionType, Handler]] = {}  # by a key that the new code carries


def call(key: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the code of an intercepted function does."""
    original, handler = _handlers[key]
    return handler(original, args, kwargs)


@contextmanager
def intercepted(function: FunctionType, handler: Handler) -> Iterator[None]:
    """Every call of `function` goes to `handler(original, args, kwargs)`.

    A function is referred to from modules, classes, closures and attributes; what all of them share is the
    function object, so its code is exchanged for the time being.
    """
    code = function.__code__
    original = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    original.__kwdefaults__ = function.__kwdefaults__
    key = id(original)
    _handlers[key] = original, handler
    function.__code__ = _forwarding_code(key, len(code.co_freevars))
    defaults, keyword_defaults = function.__defaults__, function.__kwdefaults__
    function.__defaults__, function.__kwdefaults__ = None, None
    try:
        yield
    finally:
        function.__code__ = code
        function.__defaults__, function.__kwdefaults__ = defaults, keyword_defaults
        del _handlers[key]


def _forwarding_code(key: int, cells: int) -> CodeType:
    """Code that forwards, with as many free variables as the code that it replaces."""
    names = [f"cell{i}" for i in range(cells)]
    source = (
        f"def outer({', '.join(names)}):\n"
        " def inner(*args, **kwargs):\n"
        f"  {', '.join(names) or None}\n"
        "  from fathometer.capture.functions import call\n"
        f"  return call({key}, args, kwargs)\n"
        " return inner\n"
    )
    scope: dict[str, Any] = {}
    exec(source, scope)
    inner: FunctionType = scope["outer"](*names)
    return inner.__code__
