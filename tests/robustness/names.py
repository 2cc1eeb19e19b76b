"""Harmful names of networks, data and files: markup, terminal commands, paths."""

from __future__ import annotations

NAMES = (
    "<script>window.pwned = 1</script>",
    "</script><script>window.pwned = 1</script>",
    '"><img src=x onerror="window.pwned=1">',
    "' onmouseover='window.pwned=1",
    "<!--",
    "]]>",
    "{{ 7 * 7 }}",
    "${7*7}",
    "datum['x']; window.pwned=1",
    "a\u202egnp.exe",
    "\x1b]0;owned\x07\x1b[2J\x1b[31m",
    "\x9b31m",
    "over\rwritten",
    "[bold red]marked[/bold red]",
    "[/nothing]",
    "\u2028line\u2029",
    "\ud800 half",
    "nul\x00byte",
)
PATHS = (
    *("../../x", "..", "/tmp/x", "~/x", "$HOME/x", "C:\\x", "\\\\host\\share", "CON", "aux.json", "a/b/c"),
    *(".hidden", "x" * 300, "nul\x00byte", "line\nbreak", "-rf", "näme", "*"),
)
