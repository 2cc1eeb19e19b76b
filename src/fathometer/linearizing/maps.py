"""Affine maps that take the place of a call, and the moments that they are fitted from."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from fathometer.errors import InputError

Kind: TypeAlias = Literal["channel", "slope", "identity", "affine"]
"""A line for each channel, one slope for the site, the identity, or an affine map of all channels."""

MAPS = "linear_maps"
"""The name of the child of a module that holds the maps in the place of its calls."""

RIDGE = 1e-3  # of an affine map, relative to the variance of each feature
_ROUNDING = 1e-12  # of a variance, relative to the mean square


class ChannelMap(nn.Module):
    """Computes `slope * x + intercept`, with a slope and an intercept for each channel."""

    def __init__(self, slope: Tensor, intercept: Tensor, axis: int) -> None:
        super().__init__()
        self.slope, self.intercept = nn.Parameter(slope), nn.Parameter(intercept)
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """Return the lines at x, in the dtype of x."""
        shape = [1] * x.ndim
        shape[self.axis] = -1
        return torch.addcmul(self.intercept.view(shape), x, self.slope.view(shape)).to(x.dtype)

    def extra_repr(self) -> str:
        """Return the number of channels and their axis."""
        return f"{len(self.slope)}, axis={self.axis}"


class SlopeMap(nn.Module):
    """Computes `slope * x` with one slope."""

    def __init__(self, slope: Tensor) -> None:
        super().__init__()
        self.slope = nn.Parameter(slope)

    def forward(self, x: Tensor) -> Tensor:
        """Return the product, in the dtype of x."""
        return (self.slope * x).to(x.dtype)


class FullMap(nn.Module):
    """Applies a linear layer to the channels, wherever they are."""

    def __init__(self, weight: Tensor, bias: Tensor, axis: int) -> None:
        super().__init__()
        self.linear = nn.Linear(weight.shape[1], weight.shape[0], device=weight.device, dtype=weight.dtype)
        self.linear.weight, self.linear.bias = nn.Parameter(weight), nn.Parameter(bias)
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """Return the affine map of x."""
        if self.axis in (-1, x.ndim - 1):
            return self.linear(x).to(x.dtype)
        return self.linear(x.movedim(self.axis, -1)).movedim(-1, self.axis).to(x.dtype)


class ChannelMoments:
    """Means, variances and covariances of the inputs and outputs of each channel, over all positions.

    Attributes:
        count: the number of positions so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._mean: Tensor = torch.zeros(())
        self._spread: Tensor = torch.zeros(())  # of xx, xy and yy, centred, `[3, channels]`

    def add(self, x: Tensor, y: Tensor) -> None:
        """Add positions `[channels, n]`."""
        n, dtype = x.shape[1], torch.promote_types(x.dtype, torch.float32)
        x, y = x.to(dtype), y.to(dtype)
        mean = torch.stack([x.mean(1), y.mean(1)])
        a, b = x - mean[0, :, None], y - mean[1, :, None]
        spread = torch.stack([(a * a).sum(1), (a * b).sum(1), (b * b).sum(1)]).double()
        mean = mean.double()
        if self.count:
            gap = mean - self._mean
            products = torch.stack([gap[0] * gap[0], gap[0] * gap[1], gap[1] * gap[1]])
            spread = self._spread + spread + products * (self.count * n / (self.count + n))
            mean = self._mean + gap * (n / (self.count + n))
        self._mean, self._spread, self.count = mean, spread, self.count + n

    @property
    def constant(self) -> Tensor:
        """Which channels have inputs that do not vary."""
        scale = self._mean[0].square() * self.count
        return self._spread[0] <= _ROUNDING * (self._spread[0] + scale)

    def r2(self, slope: Tensor, intercept: Tensor) -> float:
        """Return 1 − (squared errors of these lines) / (variance of the outputs); 1 without errors."""
        xx, xy, yy = self._spread
        shift = self._mean[1] - slope * self._mean[0] - intercept
        errors = (yy - 2 * slope * xy + slope.square() * xx).clamp_min(0) + self.count * shift.square()
        left, total = float(errors.sum()), float(yy.sum())
        rounding = _ROUNDING * float(self._mean[1].square().sum()) * self.count
        return 1.0 - left / total if total > rounding else float(left <= rounding)

    def lines(self) -> tuple[Tensor, Tensor]:
        """Return slopes and intercepts by least squares; a constant channel has slope 0."""
        xx, xy, _ = self._spread
        slope = torch.where(self.constant, 0.0, xy / xx.where(~self.constant, 1.0))
        return slope, self._mean[1] - slope * self._mean[0]

    def slope(self) -> Tensor:
        """Return the slope of one line through zero, by least squares over all channels."""
        product = (self._spread[1] + self.count * self._mean[0] * self._mean[1]).sum()
        square = (self._spread[0] + self.count * self._mean[0].square()).sum()
        return product / square if square > 0 else torch.ones_like(square)


class FullMoments:
    """Means, and the covariances of all features of the inputs with each other and with the outputs.

    Attributes:
        count: the number of positions so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._mean: Tensor = torch.zeros(())
        self._products: Tensor = torch.zeros(())  # xx and xy, centred, `[features, features + outputs]`
        self._variance = 0.0  # of y, summed
        self._features = 0

    def add(self, x: Tensor, y: Tensor) -> None:
        """Add positions `[n, features]`; x and y may have different widths."""
        n, self._features = len(x), x.shape[1]
        both = torch.cat([x, y], 1).double()
        mean = both.mean(0)
        both = both - mean
        products = both[:, : self._features].T @ both
        variance = float(both[:, self._features :].square().sum())
        if self.count:
            gap, weight = mean - self._mean, self.count * n / (self.count + n)
            products = self._products + products + weight * gap[: self._features, None] * gap
            variance += self._variance + weight * float(gap[self._features :].square().sum())
            mean = self._mean + gap * (n / (self.count + n))
        self._mean, self._products, self._variance, self.count = mean, products, variance, self.count + n

    @property
    def constant(self) -> Tensor:
        """Which features have inputs that do not vary."""
        variance = self._products.diagonal()[: self._features]
        return variance <= _ROUNDING * (variance + self._mean[: self._features].square() * self.count)

    def r2(self, weight: Tensor) -> float:
        """Return the share of the variance of the outputs that an affine map with this weight explains."""
        d = self._features
        xx, xy = self._products[:, :d], self._products[:, d:]
        explained = 2 * (weight * xy.T).sum() - ((weight @ xx) * weight).sum()
        rounding = _ROUNDING * float(self._mean[d:].square().sum()) * self.count
        return float(explained) / self._variance if self._variance > rounding else 1.0

    def solve(self) -> tuple[Tensor, Tensor]:
        """Return the weight `[outputs, features]` and the bias of the ridge regression."""
        d = self._features
        if self.count <= d:
            raise InputError(
                f"expected more than {d} positions to fit an affine map of {d} features, got {self.count}; "
                "give more data, or choose a line for each channel",
                parameter="data",
            )
        xx, xy = self._products[:, :d], self._products[:, d:]
        ridge = torch.where(self.constant, 1.0, RIDGE * xx.diagonal())
        weight = torch.linalg.solve(xx + ridge.diag(), xy).T
        return weight, self._mean[d:] - weight @ self._mean[:d]


def fitted(
    kind: Kind, moments: ChannelMoments | FullMoments, axis: int, like: Tensor
) -> tuple[nn.Module, float]:
    """Return the map of this kind that fits best, on the device and in the dtype of a tensor, and its R²."""
    if isinstance(moments, FullMoments):
        weight, bias = moments.solve()
        return FullMap(weight.to(like), bias.to(like), axis), moments.r2(weight)
    if kind == "channel":
        slopes, intercepts = moments.lines()
        return ChannelMap(slopes.to(like), intercepts.to(like), axis), moments.r2(slopes, intercepts)
    slope = moments.slope() if kind == "slope" else torch.ones(())
    module = SlopeMap(slope.to(like)) if kind == "slope" else nn.Identity()
    return module, moments.r2(slope.to(like.device), torch.zeros((), device=like.device))
