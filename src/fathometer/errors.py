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


def first_line(error: BaseException) -> str:
    r"""What went wrong, on one line; of an empty message, what it is.

    Example:
        >>> first_line(ValueError("no such thing.\nLook elsewhere.")), first_line(KeyError())
        ('no such thing', 'KeyError')
    """
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else type(error).__name__


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python, CUDA or the CPU allocator reports that memory ran out."""
    import torch  # imported late, so that `fathometer --help` does not wait for it

    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "allocate memory" in str(error)
    )
