from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from PIL import Image

from fathometer import InputError, measure
from fathometer.data import Inputs
from fathometer.models import ensure_torchvision_operators, load_model

CODE = """
import torch
from torch import nn
from fathometer.data import Inputs
from helper_of_mine import WIDTH

torch.rand(DRAWN)

instance = nn.Sequential(nn.Linear(WIDTH, 2), nn.ReLU())

def alone():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())

def small_images():
    return nn.Sequential(nn.Conv2d(1, 2, 1), nn.Flatten(), nn.Linear(2 * 28 * 28, 10))

def words():
    return nn.Sequential(nn.Embedding(11, 4), nn.Linear(4, 11))

def series():
    return nn.Sequential(nn.Conv1d(6, 2, 3), nn.ReLU())

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(3, 3), nn.Dropout())

def described():
    return Net(), Inputs("tensor", (3,))

def preprocessed():
    import late_helper
    return alone(), lambda image: torch.zeros(3, 9, 9)

def to_tensor(image):
    return torch.zeros(3, *image.size)

def of_any_size():
    return alone(), to_tensor

def of_one_size():
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 28 * 28, 10)), to_tensor

def flattening():
    return nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 10), nn.ReLU())

def exported():
    network = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    return torch.export.export(network, (torch.zeros(32, 8),)).module(), Inputs("tensor", (8,))

def random_weights():
    return nn.Linear(4, 4)

def failing_preprocess():
    return alone(), lambda image: 1 / 0

def bad_description():
    return alone(), (3, 32, 32)

def no_size():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(17, 2))

def broken():
    raise KeyError("weights")
"""


@pytest.fixture(autouse=True)
def _code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nets_of_mine.py").write_text(CODE.replace("DRAWN", "0"))
    (tmp_path / "helper_of_mine.py").write_text("WIDTH = 5")
    (tmp_path / "late_helper.py").write_text("")
    (tmp_path / "package_of_mine").mkdir()
    (tmp_path / "package_of_mine/__init__.py").write_text("import not_to_be_found")
    (tmp_path / "package_of_mine/nets.py").touch()
    monkeypatch.chdir(tmp_path)
    for name in ("nets_of_mine", "helper_of_mine", "late_helper"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize(
    ("factory", "kind", "shape"),
    [
        ("instance", "tensor", (5,)),
        ("alone", "image", (3, 224, 224)),
        ("small_images", "image", (1, 28, 28)),
        ("words", "tokens", (128,)),
        ("series", "tensor", (6, 1024)),
        ("Net", "tensor", (3,)),
        ("described", "tensor", (3,)),
        ("preprocessed", "image", (3, 9, 9)),
        ("of_any_size", "image", (3, 32, 32)),
        ("of_one_size", "image", (3, 28, 28)),
        ("flattening", "tensor", (784,)),
    ],
)
def test_inputs_of_factories(factory: str, kind: str, shape: tuple[int, ...]) -> None:
    path = list(sys.path)
    model = load_model(f"nets_of_mine:{factory}")
    assert sys.path == path
    assert (model.inputs.kind, model.inputs.shape) == (kind, shape)
    assert model.inputs.vocabulary == (11 if factory == "words" else None)
    assert not any(m.training for m in model.module.modules())
    assert model.inputs.flattens == (factory == "flattening")
    assert model.inputs.size_assumed == (factory == "of_any_size")
    if model.inputs.preprocess and not factory.startswith("of_"):
        assert tuple(model.inputs.preprocess(Image.new("RGB", (50, 40))).shape) == shape


@pytest.mark.parametrize("name", ["random_weights", "instance"])
def test_random_weights_do_not_depend_on_numbers_drawn_at_import(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call imports the module, the second does not; both seed before the factory is called."""
    (tmp_path / "nets_of_mine.py").write_text(CODE.replace("DRAWN", "3"))
    first, second = (load_model(f"nets_of_mine:{name}", "none", seed=7).module.state_dict() for _ in range(2))
    assert all(torch.equal(first[key], second[key]) for key in first)
    torch.rand(5)
    monkeypatch.delitem(sys.modules, "nets_of_mine")
    again = load_model(f"nets_of_mine:{name}", "none", seed=7).module.state_dict()
    assert all(torch.equal(first[key], again[key]) for key in first)


def test_a_network_from_torch_export_is_measured() -> None:
    sounding = measure(load_model("nets_of_mine:exported"), torch.randn(64, 8), samples=64, gauges="affinity")
    assert [site.name for site in sounding.sites] == ["/relu"]


def test_a_preprocessing_is_recorded_by_its_name() -> None:
    model, data = load_model("nets_of_mine:of_one_size"), torch.randn(8, 3, 28, 28)
    sounding = measure(model, data, samples=8, sites="module:1", gauges=[first])
    assert sounding.provenance.model["preprocess"] == "nets_of_mine.to_tensor"
    ensure_torchvision_operators()
    from torchvision.transforms import v2

    inputs = Inputs("image", (3, 8, 8), preprocess=v2.Compose([v2.Resize(8), partial(first)]))
    assert "Resize(size=[8]" in inputs.preprocess_name
    assert "0x" not in inputs.preprocess_name


def first(_: torch.Tensor, y: torch.Tensor) -> float:
    return float(y[0, 0])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nets_of_mine:desribed", "did you mean described"),
        ("nets_of_mine:WIDTH", "expected an nn.Module, .* got int"),
        ("nets_of_mine:failing_preprocess", "preprocess failed .*division by zero"),
        ("nets_of_mine:bad_description", "expected Inputs or a preprocessing beside the network, got tuple"),
        ("nets_of_mine:no_size", "it runs on none of the inputs that were tried .*; let the factory return"),
        ("nets_of_mine:broken", "nets_of_mine:broken.. failed: KeyError"),
        ("package_of_mine.nets:f", "importing package_of_mine.nets failed: .*'not_to_be_found'"),
    ],
)
def test_unsuitable_factories_are_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        load_model(name)
    assert "\n" not in str(raised.value)
