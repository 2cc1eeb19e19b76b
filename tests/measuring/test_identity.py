"""The content of data decides their identity."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fathometer.measuring.checksums import checksum, weights_checksum

X = torch.randn(40, 3, 5, generator=torch.Generator().manual_seed(0))
CHANGED = X.clone()
CHANGED[20, 1, 2] += 1e-6
SWAPPED = X[[1, 0, *range(2, 40)]]


@pytest.mark.parametrize("other", [CHANGED, SWAPPED, X[:39], X.reshape(40, 15), X.double()])
def test_other_contents_shapes_and_dtypes_have_another_checksum(other: Tensor) -> None:
    assert checksum([X]) != checksum([other])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.bfloat16, torch.float64])
def test_the_checksum_does_not_depend_on_the_layout_in_memory(dtype: torch.dtype) -> None:
    x = (X > 0).to(dtype)
    assert checksum([x[1:]]) == checksum([x[1:].clone()])
    assert checksum([x.mT]) == checksum([x.mT.contiguous()])
    assert checksum([x[:0]]) == checksum([x[:0].clone()])


def test_the_checksum_of_weights_depends_on_names_and_every_number() -> None:
    large = torch.randn(3 * 2**20 + 1, generator=torch.Generator().manual_seed(0))  # more than one block
    state = {"small": X, "large": large, "half": X.half()[:, :, :3], "more": large.double()}
    known = weights_checksum(state)
    assert known == weights_checksum({name: value.clone() for name, value in state.items()})
    for place in (0, 2**21 - 600, 2**21, len(large) - 1):  # at both ends of a block, too
        changed = large.clone()
        changed[place] += 1e-6
        assert weights_checksum(state | {"large": changed}) != known
    assert weights_checksum({"other" if name == "small" else name: state[name] for name in state}) != known


def test_the_checksum_of_a_composite_weight_depends_on_all_its_parts() -> None:
    """Quantised weights of torchao are such tensors: whole numbers and scales, and cannot be reshaped."""
    from torch.testing._internal.two_tensor import TwoTensor

    known = weights_checksum({"weight": TwoTensor(X, X)})
    assert weights_checksum({"weight": TwoTensor(X.clone(), X.clone())}) == known
    assert weights_checksum({"weight": TwoTensor(X, X + 1)}) != known
    assert weights_checksum({"weight": TwoTensor(X + 1, X)}) != known


@pytest.mark.gpu
def test_checksums_are_the_same_on_a_gpu() -> None:
    assert checksum([X.cuda()]) == checksum([X])
    large = torch.randn(20 * 2**20 + 1)
    state = {"small": X, "large": large, "half": X.half(), "more": large.double()}
    moved = {name: value.cuda() for name, value in state.items()}
    assert weights_checksum(moved) == weights_checksum(state) == weights_checksum(moved | {"half": X.half()})
