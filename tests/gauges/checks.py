"""What holds of every gauge."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from fathometer.errors import InputError
from tests.data import correlated


def values(
    gauge: Callable[..., torch.Tensor | dict[str, torch.Tensor]], x: object, y: object
) -> torch.Tensor:
    """What a gauge gives, the last axis over its names."""
    found = gauge(x, y)
    return torch.stack(list(found.values()), -1) if isinstance(found, dict) else found[..., None]


def check_dtypes_and_nan(gauge: Callable[..., torch.Tensor]) -> None:
    x = torch.from_numpy(correlated(40, 6))
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        narrow = x.to(dtype).requires_grad_()
        found = values(gauge, narrow, narrow.relu())
        assert found.dtype == torch.float64
        assert not found.requires_grad
        torch.testing.assert_close(found, values(gauge, narrow.double(), narrow.double().relu()))
    x[3, 2] = torch.nan
    with pytest.raises(InputError, match="x: expected finite values"):
        gauge(x, x.relu())
