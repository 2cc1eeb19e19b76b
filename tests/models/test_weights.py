from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from fathometer import InputError
from fathometer.models import ensure_torchvision_operators, load_weights


def small() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 2))


class Wrapped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = small()


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.body.weight


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return all(torch.equal(a[k], b[k]) for k in a)


def prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {prefix + k: v for k, v in tensors.items()}


@pytest.mark.parametrize(
    "wrap",
    [
        lambda t: t,
        lambda t: {"state_dict": prefixed("module.", t), "epoch": 3},
        lambda t: {"model": prefixed("_orig_mod.module.", t), "optimizer": {"state": {}}},
        lambda t: {"checkpoint": 1, "model_ema": {"state_dict": prefixed("backbone.", t)}},
        lambda t: prefixed("net.model.", t),
    ],
)
def test_containers_and_prefixes_are_removed(wrap: Any, tmp_path: Path) -> None:
    trained, module = small(), small()
    torch.save(wrap(trained.state_dict()), tmp_path / "w.pth")
    load_weights(module, tmp_path / "w.pth")
    assert same(module.state_dict(), trained.state_dict())


@pytest.mark.parametrize("build", [small, Wrapped])
def test_prefixes_of_the_network_are_added_or_kept(build: type[nn.Module], tmp_path: Path) -> None:
    trained, module = build(), Wrapped()
    save_file(trained.state_dict(), tmp_path / "w.safetensors")
    load_weights(module, tmp_path / "w.safetensors")
    assert same(module.model.state_dict(), getattr(trained, "model", trained).state_dict())


def test_counters_of_batches_and_tied_weights_may_be_absent(tmp_path: Path) -> None:
    trained, module = small(), small()
    torch.save({k: v for k, v in trained.state_dict().items() if "num_batches" not in k}, tmp_path / "w.pth")
    load_weights(module, tmp_path / "w.pth")
    assert same(module.state_dict(), trained.state_dict())
    tied = Tied()
    torch.save({"body.weight": torch.ones(5, 3)}, tmp_path / "t.pth")
    load_weights(tied, tmp_path / "t.pth")
    assert tied.head.weight.sum() == 15


def test_a_mismatch_lists_what_is_wrong_and_changes_nothing(tmp_path: Path) -> None:
    tensors = small().state_dict()
    tensors["3.weight"] = torch.zeros(7, 4)
    tensors["extra"] = torch.zeros(1)
    for key in ("0.weight", "0.bias", "1.weight", "1.bias"):
        del tensors[key]
    torch.save(tensors, tmp_path / "w.pth")
    module = small()
    before = {k: v.clone() for k, v in module.state_dict().items()}
    with pytest.raises(InputError) as raised:
        load_weights(module, tmp_path / "w.pth")
    message = str(raised.value)
    assert "4 missing: 0.weight, 0.bias, 1.weight and 1 more" in message
    assert "1 unexpected: extra" in message
    assert "1 of another shape: 3.weight (7, 4) instead of (2, 4)" in message
    assert "\n" not in message
    assert same(module.state_dict(), before)


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("unpickled",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (small(), "save model.state_dict"),
        ({"state_dict": small().state_dict(), "args": Evil()}, "save model.state_dict"),
        ({"epoch": 3}, "expected tensors by name, got epoch"),
        (torch.zeros(2), "expected a state dict, got Tensor"),
    ],
)
def test_files_without_a_state_dict_are_refused(
    content: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(content, tmp_path / "w.pth")
    with pytest.raises(InputError, match=message) as raised:
        load_weights(small(), tmp_path / "w.pth")
    assert "\n" not in str(raised.value)
    assert "unpickled" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["w.pth", "w.safetensors"])
@pytest.mark.parametrize("content", [b"", b"\x80\x02garbage", b"PK\x03\x04" + b"0" * 99])
def test_garbage_is_refused_in_one_line(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=name) as raised:
        load_weights(small(), tmp_path / name)
    assert "\n" not in str(raised.value)


def test_weights_of_a_class_that_asks_for_a_version(tmp_path: Path) -> None:
    ensure_torchvision_operators()
    torchvision = pytest.importorskip("torchvision.models")
    trained, module = torchvision.mnasnet0_5(weights=None), torchvision.mnasnet0_5(weights=None)
    torch.save(dict(trained.state_dict()), tmp_path / "w.pth")
    load_weights(module, tmp_path / "w.pth")
    assert same(module.state_dict(), trained.state_dict())
