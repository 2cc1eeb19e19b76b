"""All programs, in the order of the page."""

from __future__ import annotations

from soak.program import Program

PROGRAMS: list[Program] = []
