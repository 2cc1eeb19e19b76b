"""Checks that every gauge should pass, for those of the package and for your own; assertions for networks."""

from fathometer.testing.checks import Check, check_gauge, gauge_checks
from fathometer.testing.networks import NetworkError, assert_healthy, assert_signature
from fathometer.testing.promises import GaugeError, Promises

__all__ = [
    "Check",
    "GaugeError",
    "NetworkError",
    "Promises",
    "assert_healthy",
    "assert_signature",
    "check_gauge",
    "gauge_checks",
]
