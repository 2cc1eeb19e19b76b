"""Numbers and tensors that are not float32 matrices."""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.zoo.calls import Reused
from tests.zoo.entry import Awkward, Net


class Tagged(Tensor):
    """A kind of tensor of the user's own."""


def of_complex(_: Net, x: Tensor) -> Tensor:
    return F.relu(torch.tanh(torch.complex(x, x)).abs() - 0.5)


def whole() -> Net:
    """F.relu of whole numbers is none; what is looked up by them is data."""
    return Net(lambda net, x: torch.tanh(net.table(F.relu(x))), table=nn.Embedding(5, 8))


def of_sparse(_: Net, x: Tensor) -> Tensor:
    return torch.tanh(torch.relu(x.to_sparse()).to_dense())


def of_nested(_: Net, x: Tensor) -> Tensor:
    """Sequences of different lengths, in one tensor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a prototype, says torch
        ragged = torch.nested.as_nested_tensor([x[:2], x[2:]])
    return torch.tanh(torch.nested.to_padded_tensor(torch.relu(ragged), 0.0))


def tagged() -> tuple[Tensor]:
    return (torch.randn(6, 8).as_subclass(Tagged),)


NUMBERS = {
    "bf16": Awkward("bfloat16", Reused, ["act", "act#2"], dtype=torch.bfloat16),
    "double": Awkward("float64", Reused, ["act", "act#2"], dtype=torch.float64),
    "complex": Awkward(
        "an activation of complex numbers", lambda: Net(of_complex), ["/relu"], becomes="passed over"
    ),
    "whole numbers": Awkward(
        "an activation of whole numbers",
        whole,
        ["/tanh"],
        inputs=lambda: (torch.randint(-4, 5, (6, 3)),),
        becomes="passed over",
    ),
    "sparse": Awkward(
        "an activation of a sparse tensor", lambda: Net(of_sparse), ["/tanh"], becomes="passed over"
    ),
    "nested": Awkward(
        "an activation of a nested tensor", lambda: Net(of_nested), ["/tanh"], becomes="passed over"
    ),
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
