from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import NoReturn

import pytest

from fathometer.models.torchvision_operators import ensure_torchvision_operators

CODE = """
import gc, torch
try:
    import torchvision  # fails, or not, and leaves something behind
except RuntimeError:
    pass
from fathometer.models.torchvision_operators import ensure_torchvision_operators
ensure_torchvision_operators()
ensure_torchvision_operators()
gc.collect()
import torchvision
assert torch.ops.torchvision.nms
assert torchvision.extension is not None
assert torchvision.models.resnet18(weights=None).eval()(torch.zeros(1, 3, 32, 32)).shape == (1, 1000)
"""


def test_torchvision_can_be_imported_even_after_a_failure() -> None:
    command = [sys.executable, "-W", "error", "-c", CODE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def refuse(name: str) -> NoReturn:
    raise AssertionError(f"{name} was imported")


def test_a_successful_import_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    torchvision = ModuleType("torchvision")
    monkeypatch.setitem(sys.modules, "torchvision", torchvision)
    monkeypatch.setattr("importlib.import_module", refuse)
    ensure_torchvision_operators()
    assert sys.modules["torchvision"] is torchvision
