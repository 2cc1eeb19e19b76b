"""The errors that fathometer raises, and checks that several parts share.

Every message says what was expected, what was given, and what to do. Nothing heavy is imported here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from numbers import Real
from typing import Any, get_args


class FathometerError(Exception):
    """Any error that fathometer raises on purpose."""


class InputError(FathometerError, ValueError):
    """The input cannot be measured: wrong shape, dtype, option, or no variation to measure.

    Attributes:
        parameter: name of the parameter that is wrong, if it is one; the message begins with it. The command
            line writes its flag instead.
        reason: the message without that name.

    Example:
        >>> error = InputError("expected a whole number, got 0.5", parameter="samples")
        >>> str(error), error.parameter
        ('samples: expected a whole number, got 0.5', 'samples')
    """

    def __init__(self, message: str, *, parameter: str | None = None) -> None:
        super().__init__(message if parameter is None else f"{parameter}: {message}")
        self.parameter, self.reason = parameter, message


class TooFewSamplesError(InputError):
    """The data end before the first batch is full."""


class NumericalError(FathometerError, ArithmeticError):
    """A decomposition failed, and so did its slower replacement."""


class MissingExtraError(FathometerError, ImportError):
    """The call needs an optional dependency that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}: pip install 'fathometer[{extra}]'")
        self._arguments = package, extra, purpose

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        """Make copies, also in another process, from the same arguments."""
        return type(self), self._arguments


class ForwardError(FathometerError, RuntimeError):
    """The network itself failed on its input."""


class OutOfMemoryError(FathometerError, MemoryError):
    """The work does not fit into memory; the message says what to make smaller."""


def import_extra(module: str, *submodules: str, extra: str, purpose: str, package: str = "") -> Any:
    """Import an optional module and some of its submodules; without it, the error names the extra.

    `package` is what it is called on PyPI, if that is another name.
    """
    try:
        found = import_module(module)
        for submodule in submodules:
            import_module(f"{module}.{submodule}")
    except ImportError as error:
        raise MissingExtraError(package or module, extra, purpose) from error
    return found


def first_line(error: BaseException) -> str:
    r"""Return the first line of an error's message, or its class if the message is empty.

    Example:
        >>> first_line(ValueError("no such file.\nLook elsewhere.")), first_line(KeyError())
        ('no such file', 'KeyError')
    """
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else type(error).__name__


def did_you_mean(name: str, known: Iterable[str], *, maximum: int = 3, cutoff: float = 0.6) -> str:
    """Return `did you mean a or b?` for a mistyped name, or an empty text if nothing is similar.

    Names that begin with the given one come first; upper and lower case do not matter.

    Example:
        >>> did_you_mean("afinity", ["affinity", "cka"]), did_you_mean("wombat", ["affinity", "cka"])
        ('did you mean affinity?', '')
    """
    by_lower = {str(candidate).lower(): str(candidate) for candidate in known}
    word = name.lower()
    near = [lower for lower in by_lower if word and lower.startswith(word)]
    near = near or get_close_matches(word, by_lower, n=maximum, cutoff=cutoff)
    return f"did you mean {' or '.join(by_lower[lower] for lower in near[:maximum])}?" if near else ""


def check_whole(parameter: str, value: object, minimum: int = 0, *, maximum: int = 2**63 - 1) -> int:
    """Return a whole number as an `int`, also from NumPy's integers; refuse anything else, also True.

    Example:
        >>> check_whole("samples", 64, minimum=2)
        64
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
        if minimum <= number <= maximum:
            return number
    except TypeError:
        pass
    limit = f" to {maximum}" if maximum < 2**63 - 1 else ""
    raise InputError(f"expected a whole number from {minimum}{limit}, got {value!r}", parameter=parameter)


def check_positive(parameter: str, value: object, *, or_zero: bool = False) -> float:
    """Return a finite number > 0, or from 0, as a `float`, also from NumPy's numbers; refuse anything else.

    Example:
        >>> check_positive("gamma", 0.5)
        0.5
    """
    number = as_float(value)
    if 0 < number < math.inf or (or_zero and number == 0):
        return number
    expected = "from 0" if or_zero else "> 0"
    raise InputError(f"expected a finite number {expected}, got {value!r}", parameter=parameter)


def as_float(value: object) -> float:
    """Return a number of Python or NumPy as a `float`, and NaN for anything else, also True."""
    return float(value) if not isinstance(value, bool) and isinstance(value, Real) else math.nan


def check_choice(parameter: str, value: object, choices: Any) -> None:
    """Refuse a value that is not one of a `Literal`, or of several names.

    Example:
        >>> check_choice("leftover", "keeep", ("drop", "keep"))
        Traceback (most recent call last):
            ...
        fathometer.errors.InputError: leftover: expected one of drop, keep, got 'keeep'; did you mean keep?
    """
    known = get_args(choices) or tuple(choices)
    if value not in known:
        expected = f"one of {', '.join(known)}" if len(known) > 1 else known[0]
        hint = did_you_mean(str(value), known)
        raise InputError(f"expected {expected}, got {value!r}{hint and f'; {hint}'}", parameter=parameter)


def join_names(names: Sequence[str], limit: int = 8, between: str = ", ") -> str:
    """Join names; of more than `limit` the rest is counted."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return between.join(names[:limit]) + more


def check_device(device: object, parameter: str = "device") -> str:
    """Return the device as text if work can be done there; `"auto"` means a GPU if there is one."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.ones(1, device=torch.device(device)).sum().item()  # type: ignore[call-overload]
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise InputError(
            f"{device} is not usable here ({first_line(error)}); try cpu", parameter=parameter
        ) from error
    return str(device)


def is_out_of_memory(error: BaseException) -> bool:
    """Say whether Python, CUDA or the CPU allocator reports that memory ran out."""
    import torch

    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "allocate memory" in str(error)
    )
