"""How the command names what it measures and what it could not read."""

from __future__ import annotations

import os
import re
from pathlib import Path

_LONGEST = 80  # characters: two of them and an ending must make a name that file systems take


def slug(name: str) -> str:
    """`resnet18` for `torchvision:resnet18`, `photos` for `some/photos/`, `random` for `random:600`."""
    last = name.partition(":")[0] if name.startswith("random:") else name.rpartition(":")[2]
    stem = Path(last).name.removesuffix(Path(last).suffix if os.path.isfile(last) else "")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem)[:_LONGEST].strip("-.") or "data"


def skipped_line(skipped: list[str]) -> str:
    """What could not be read: how many, and the first of them."""
    names = ", ".join(skipped[:3]) + (", …" if len(skipped) > 3 else "")
    return f"skipped {len(skipped)} unreadable: {names}"
