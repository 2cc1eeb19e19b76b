"""One family of errors: every message says what was expected, what came, and what to do."""

from __future__ import annotations


class FathometerError(Exception):
    """Anything that fathometer raises on purpose."""


class InputError(FathometerError, ValueError):
    """The input cannot be measured: wrong shape, dtype, option, or no variation to measure."""


class TooFewSamplesError(InputError):
    """The data end before the first batch is full."""


class NumericalError(FathometerError, ArithmeticError):
    """A decomposition failed, and so did its slower stand-in."""


class MissingExtraError(FathometerError, ImportError):
    """The call needs an optional dependency that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}: pip install 'fathometer[{extra}]'")
        self._arguments = package, extra, purpose

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        """Copies, and what comes back from another process, are made from the same arguments."""
        return type(self), self._arguments


class ForwardError(FathometerError, RuntimeError):
    """The network itself failed on its input."""


class OutOfMemoryError(FathometerError, MemoryError):
    """The work does not fit; the message says what to make smaller."""
