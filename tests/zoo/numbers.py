"""Numbers and tensors that are not float32 matrices."""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.zoo.calls import Functional, InPlace, Reused
from tests.zoo.entry import Awkward


class Tagged(Tensor):
    """A kind of tensor of the user's own."""


class Complex(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.relu(torch.tanh(torch.complex(x, x)).abs() - 0.5)


class Whole(nn.Module):
    """F.relu of whole numbers is none; what is looked up by them is data."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 8)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.table(F.relu(x)))


class Sparse(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(torch.relu(x.to_sparse()).to_dense())


class Nested(nn.Module):
    """Sequences of different lengths, in one tensor."""

    def forward(self, x: Tensor) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a prototype, says torch
            ragged = torch.nested.as_nested_tensor([x[:2], x[2:]])
        return torch.tanh(torch.nested.to_padded_tensor(torch.relu(ragged), 0.0))


def tagged() -> tuple[Tensor]:
    return (torch.randn(6, 8).as_subclass(Tagged),)


NUMBERS = {
    "bf16": Awkward("bfloat16", Reused, ["act", "act#2"], dtype=torch.bfloat16),
    "fp16": Awkward("float16", InPlace, ["1", "3"], dtype=torch.float16),
    "double": Awkward(
        "float64",
        Functional,
        [
            *["/relu", "/relu#2", "/relu#3", "inner/relu", "inner/silu", "inner/sigmoid"],
            *["/tanh", "/leaky_relu", "/sigmoid"],
        ],
        dtype=torch.float64,
        trains=False,
    ),
    "complex": Awkward("an activation of complex numbers", Complex, ["/relu"], becomes="passed over"),
    "whole numbers": Awkward(
        "an activation of whole numbers",
        Whole,
        ["/tanh"],
        inputs=lambda: (torch.randint(-4, 5, (6, 3)),),
        becomes="passed over",
    ),
    "sparse": Awkward("an activation of a sparse tensor", Sparse, ["/tanh"], becomes="passed over"),
    "nested": Awkward("an activation of a nested tensor", Nested, ["/tanh"], becomes="passed over"),
    "tagged": Awkward("a subclass of Tensor", Reused, ["act", "act#2"], inputs=tagged, trains=False),
    "one sample": Awkward("a batch of one", Reused, ["act", "act#2"], inputs=(1, 8)),
    "no sample": Awkward("an empty batch", Reused, [], inputs=(0, 8), becomes="no sites"),
    "no axis": Awkward("a single number", nn.Tanh, [], inputs=lambda: (torch.tensor(0.5),)),
    "not a number": Awkward(
        "NaN and infinities", Reused, ["act", "act#2"], inputs=lambda: (torch.full((6, 8), torch.nan),)
    ),
    "meta": Awkward(
        "shapes without numbers",
        lambda: Reused().to("meta"),
        ["act", "act#2"],
        inputs=lambda: (torch.empty(6, 8, device="meta"),),
    ),
}
