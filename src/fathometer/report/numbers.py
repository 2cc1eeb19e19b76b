"""Numbers and names of gauges for reading, the same in figures, pages and sentences."""

from __future__ import annotations


def number(value: float) -> str:
    """Write a number for reading: whole numbers as they are, others with three decimals.

    `number` in `page.js` does the same. Both are given the full value, so that one value always reads alike.

    Example:
        >>> number(0.12345), number(123.456), number(0.00012345), number(1.0)
        ('0.123', '123.5', '1.23e-04', '1')
    """
    size = abs(value)
    if size and not 1e-3 <= size < 1e5:
        return f"{value:.2e}"
    if float(value).is_integer():
        return str(int(value))
    return f"{value:.{1 if size >= 100 else 3}f}"


def gauge_label(gauge: str) -> str:
    """Return the name of a gauge for reading: `affinity score`, `stable rank x`."""
    return "affinity score" if gauge == "affinity" else gauge.replace("_", " ")
