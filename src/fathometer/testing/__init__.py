"""Checks that every gauge should pass, for those of the package and for your own."""

from fathometer.testing.checks import Check, check_gauge, gauge_checks
from fathometer.testing.promises import GaugeError, Promises

__all__ = ["Check", "GaugeError", "Promises", "check_gauge", "gauge_checks"]
