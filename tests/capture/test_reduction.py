from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fathometer import InputError
from fathometer.capture import Reduction, watch
from fathometer.capture.axes import Facts
from fathometer.capture.reduce import PassInfo, reduce


def reduced(
    x: Tensor,
    axis: int,
    *,
    rows: int = 1,
    samples: int | None = None,
    mask: Tensor | None = None,
    first: int = 0,
    site: str = "site",
    **options: Any,
) -> Tensor:
    given = PassInfo(len(x) if samples is None else samples, first, mask)
    return reduce(x, Facts(axis, rows), Reduction(**options), given, site).matrix


def test_means_and_sums_keep_the_channels() -> None:
    x = torch.randn(6, 3, 4, 5)
    torch.testing.assert_close(reduced(x, 1), x.mean((2, 3)))
    torch.testing.assert_close(reduced(x, -1), x.mean((1, 2)))
    torch.testing.assert_close(reduced(x, 1, pooling="sum"), x.sum((2, 3)))
    torch.testing.assert_close(reduced(x, 1, channel_axis=2), x.mean((1, 3)))
    torch.testing.assert_close(reduced(x[..., 0], 2, channel_axis=1), x[..., 0].mean(2))
    torch.testing.assert_close(reduced(x, 1, pooling="flatten"), x.flatten(1))


def test_the_authors_average_the_last_axes_whatever_they_mean() -> None:
    tokens, image = torch.randn(6, 7, 8), torch.randn(6, 4, 5, 3)
    torch.testing.assert_close(reduced(tokens, 2, pooling="authors"), tokens.mean(2))
    torch.testing.assert_close(reduced(image, 3, pooling="authors"), image.mean((2, 3)))
    torch.testing.assert_close(reduced(tokens[:, 0], 1, pooling="authors"), tokens[:, 0])


def test_matrices_are_copied() -> None:
    x = torch.randn(6, 3)
    kept = reduced(x, 1)
    x.zero_()
    assert kept.abs().min() > 0


def test_samples_may_be_elsewhere_or_folded() -> None:
    x = torch.randn(7, 6, 3)  # tokens first
    torch.testing.assert_close(reduced(x, 2, samples=6, sample_axis=1), x.mean(0))
    folded = torch.randn(12, 4, 3)  # two windows of each sample
    torch.testing.assert_close(reduced(folded, 2, samples=6, rows=2), folded.reshape(6, 8, 3).mean(1))
    some = torch.randn(4, 3)  # a part of the samples, as experts get
    torch.testing.assert_close(reduced(some, 1, samples=6), some)


def test_masks_are_respected() -> None:
    x = torch.randn(3, 5, 4)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 1, 1, 1, 0]])
    tokens = reduced(x, 2, mask=mask, pooling="tokens")
    torch.testing.assert_close(tokens, torch.cat((x[0], x[1, :2], x[2, 1:4])))
    means = reduced(x, 2, mask=mask)
    torch.testing.assert_close(means[1:], torch.stack((x[1, :2].mean(0), x[2, 1:4].mean(0))))
    x[1, 3] = torch.nan  # padding may hold anything
    torch.testing.assert_close(reduced(x, 2, mask=mask)[1], x[1, :2].mean(0))
    sums = reduced(x, 2, mask=mask, pooling="sum")
    torch.testing.assert_close(sums[2], x[2, 1:4].sum(0))
    flat = reduced(x.flatten(0, 1), 1, samples=3, rows=5, mask=mask, pooling="tokens")
    torch.testing.assert_close(flat, tokens)
    assert reduced(x, 2, pooling="tokens").shape == (15, 4)


def test_random_positions_depend_on_seed_site_and_sample_alone() -> None:
    x = torch.arange(40.0).reshape(1, 1, 40).repeat(200, 2, 1) + 100 * torch.arange(2)[:, None]
    drawn = reduced(x, 1, pooling="position")
    assert drawn.shape == (200, 2)
    assert torch.equal(drawn[:, 0] + 100, drawn[:, 1])
    assert len(drawn[:, 0].unique()) > 30
    parts = [reduced(x[i : i + 7], 1, pooling="position", first=i) for i in range(0, 200, 7)]
    assert torch.equal(torch.cat(parts), drawn)
    assert not torch.equal(reduced(x, 1, pooling="position", seed=1), drawn)
    assert not torch.equal(reduced(x, 1, pooling="position", site="other"), drawn)


def test_random_positions_are_those_that_a_mask_admits() -> None:
    x = torch.arange(6.0)[None, :, None].repeat(300, 1, 2)  # the position itself
    mask = torch.tensor([[1, 1, 1, 0, 0, 0], [0, 0, 1, 0, 1, 1], [1] * 6]).repeat(100, 1)
    drawn = reduced(x, 2, mask=mask, pooling="position")[:, 0]
    assert bool(mask[torch.arange(300), drawn.long()].all())
    assert [sorted(set(drawn[i::3].tolist())) for i in range(3)] == [[0, 1, 2], [2, 4, 5], [0, 1, 2, 3, 4, 5]]
    assert torch.equal(drawn[2::3], reduced(x, 2, pooling="position")[2::3, 0])
    longer, wider = torch.cat((x, x), 1), torch.cat((mask, 0 * mask), 1)  # another batch, with more padding
    assert torch.equal(reduced(longer, 2, mask=wider, pooling="position")[:, 0], drawn)
    assert torch.equal(reduced(x, 2, mask=0 * mask, pooling="position"), torch.zeros(300, 2))


def test_low_precision_is_summed_in_float32() -> None:
    x = torch.full((2, 3, 100, 100), 100.0, dtype=torch.float16)
    assert reduced(x, 1, pooling="sum").tolist() == [[1e6] * 3] * 2
    assert reduced(x, 1).dtype == torch.float32
    assert reduced(x.double(), 1).dtype == torch.float64


def test_impossible_reductions_are_refused() -> None:
    with pytest.raises(InputError, match="expected one of mean"):
        Reduction("median")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="give other axes"):
        reduced(torch.randn(2, 3, 4), 1, channel_axis=5)
    with pytest.raises(InputError, match="one axis"):
        reduced(torch.randn(2, 3, 4), 1, channel_axis=0)


class Layouts(nn.Module):
    """Channels at the second axis, at the last, and moved about; all of width 6."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.linear = nn.Conv2d(3, 6, 1), nn.LayerNorm(6), nn.Linear(6, 6)
        self.line = nn.Conv1d(6, 6, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.conv(x))  # [n, 6, h, w]
        x = torch.relu(nn.functional.max_pool2d(x, 2) + 1)
        x = torch.relu(x.permute(0, 2, 3, 1))  # [n, h, w, 6]
        x = torch.relu(self.linear(self.norm(x)))
        x = torch.relu(x.chunk(2, -1)[0].repeat(1, 1, 1, 2))
        x = torch.relu(x.permute((0, 3, 1, 2)))
        x = torch.relu(x.permute(dims=(0, 2, 3, 1)).transpose(1, 3))
        x = x.flatten(2).transpose(1, 2)  # [n, tokens, 6]
        x = torch.relu(self.linear(x))
        x = torch.relu(x.mT)  # [n, 6, tokens]
        x = torch.relu(x.mT.transpose(2, 1))
        line = self.conv(torch.ones_like(x)[:, :3, None])  # [n, 6, 1, tokens]
        torch.relu(line.squeeze(2))
        torch.relu(line.squeeze(2).unsqueeze(-1))
        torch.relu(line.flatten(2))
        return torch.relu(self.line(x) * 2)  # [n, 6, tokens]


def test_channels_are_found_from_the_operators() -> None:
    model = Layouts()
    with torch.no_grad(), watch(model) as record:
        output = model(torch.randn(5, 3, 8, 10))
    assert len(record.pairs) == 14
    assert {tuple(pair.x.shape) for pair in record.pairs.values()} == {(5, 6)}
    assert not vars(output)


def test_without_operators_the_number_of_axes_decides() -> None:
    assert [Facts().channel_axis(axes) for axes in (2, 3, 4, 5)] == [1, 2, 1, 1]
