"""On a GPU, the pairs of a ReLU come from one read of its input."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fathometer.capture import Pooling, watch
from fathometer.capture.relu_means import relu_means
from fathometer.transport import kernels

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


class Relu(nn.Module):
    """Applies a ReLU to what the `layer` makes of its input."""

    def __init__(self, layer: nn.Module, *, inplace: bool) -> None:
        super().__init__()
        self.layer, self.act = layer, nn.ReLU(inplace)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.act(self.layer(x)) - 0.1)


@pytest.mark.parametrize("pooling", ["mean", "sum"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize(
    ("layer", "shape", "channels_last"),
    [
        (nn.Conv2d(3, 70, 1), (5, 3, 7, 7), False),
        (nn.Conv2d(3, 64, 1), (5, 3, 14, 14), False),
        (nn.Conv2d(3, 8, 1), (3, 3, 57, 56), False),
        (nn.Conv2d(3, 40, 1), (5, 3, 9, 9), True),
        (nn.Conv1d(3, 200, 1), (5, 3, 4), False),
        (nn.Conv3d(3, 6, 1), (5, 3, 4, 5, 6), False),
        (nn.Linear(3, 100), (5, 50, 3), False),
        (nn.Linear(3, 9), (5, 300, 3), False),
        (nn.Linear(3, 9), (5, 3), False),
    ],
)
def test_pairs_are_those_of_torch(
    layer: nn.Module,
    shape: tuple[int, ...],
    channels_last: bool,
    dtype: torch.dtype,
    pooling: Pooling,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, x = Relu(layer, inplace=True).to("cuda", dtype), torch.randn(shape).to("cuda", dtype)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    none: list[Exception] = []
    found = []
    for failures in (none, [RuntimeError("not tried")]):
        monkeypatch.setattr(kernels, "_FAILURES", failures)
        with torch.no_grad(), watch(model, reduction=pooling, capacity=12) as record:
            outputs = [model(x), model(x)]
        found.append((outputs, list(record.pairs.values())))
    (outputs, pairs), (expected_outputs, expected) = found
    assert none == []
    for output, right in zip(outputs, expected_outputs, strict=True):
        assert torch.equal(output, right)
    for pair, usual in zip(pairs, expected, strict=True):
        assert pair.resolution == usual.resolution
        for side, right in zip(pair, usual, strict=True):
            torch.testing.assert_close(side, right, rtol=1e-5, atol=1e-6 if pooling == "mean" else 1e-3)


def test_the_kernel_is_used_and_nan_and_inf_stay() -> None:
    x = torch.randn(4, 6, 5, 5, device="cuda")
    x[0, 1, 0, 0], x[1, 2, 1, 1], x[2, 3, 0, 0] = torch.nan, -torch.inf, torch.inf
    found = list(torch.empty(2, 4, 6, device="cuda"))
    assert relu_means(x, 1, *found, mean=True), kernels._FAILURES
    for side, right in zip(found, (x, x.relu()), strict=True):
        torch.testing.assert_close(side, right.mean((2, 3)), equal_nan=True)
    assert not relu_means(x.transpose(2, 3), 1, *found, mean=True)
