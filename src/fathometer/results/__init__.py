"""Results and their files: soundings, histories, and how each of them came about."""

from fathometer.results.files import complete_file, locked

__all__ = ["complete_file", "locked"]
