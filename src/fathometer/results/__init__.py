"""Results and their files: soundings, histories, and how each of them came about."""

from fathometer.results.history import History
from fathometer.results.history_file import load as load_history
from fathometer.results.loading import load
from fathometer.results.provenance import Provenance
from fathometer.results.sounding import Sounding

__all__ = ["History", "Provenance", "Sounding", "load", "load_history"]
