"""The front door: `measure(model, data)` gives a `Sounding`."""

from fathometer.measuring.measure import measure

__all__ = ["measure"]
