"""Checks that every gauge should pass, for those of the package and for one's own."""

from fathometer.testing.promises import GaugeError, Promises
from fathometer.testing.suite import Check, Finding, check_gauge, gauge_checks

__all__ = ["Check", "Finding", "GaugeError", "Promises", "check_gauge", "gauge_checks"]
