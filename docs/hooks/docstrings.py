"""Docstrings of the package as the reference needs them: examples are code, brackets are brackets."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object


class PlainDocstrings(Extension):
    """Griffe takes `Example:` for a remark in words, and Markdown takes `[a] [b]` for a link."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Name the section as Griffe does; matrices side by side stay matrices."""
        if obj.docstring:
            text = re.sub(r"(?m)^(\s*)Example:$", r"\1Examples:", obj.docstring.value)
            obj.docstring.value = text.replace("] [", r"] \[")
