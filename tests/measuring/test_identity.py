"""The content of data decides their identity."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fathometer.measuring.identity import checksum

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


@pytest.mark.gpu
def test_the_checksum_is_the_same_on_a_gpu() -> None:
    assert checksum([X.cuda()]) == checksum([X])
