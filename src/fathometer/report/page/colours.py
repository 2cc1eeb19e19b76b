"""The colours of charts. Those of the style sheet go by name: `draw` in `charts.js` puts in what they are."""

from __future__ import annotations

from fathometer.report.figures.style import PALETTE

CATEGORIES = PALETTE[:6]
"""Without the seventh: it is ink, which a dark page swallows."""
FAINT = "var(--faint)"
"""What lies behind: bands, joins, lines between points."""
ACCENT = "var(--accent)"
"""What is shown, where there is one series."""
WARM = "var(--warm)"
"""What was chosen, and where one is."""
LEGIBLE = "#76838f"
"""Text on a canvas, on light and on dark: it keeps its colour in print."""
