"""How severe a finding is."""

from __future__ import annotations

from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "note"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""From the most to the least severe."""
