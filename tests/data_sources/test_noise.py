from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fathometer.data import Inputs, open_data
from fathometer.errors import InputError
from tests.data_sources.making import IMAGES, TENSOR, TOKENS, tensors


def test_a_sample_depends_only_on_seed_and_number() -> None:
    expected = torch.cat(tensors(open_data("random:20", TENSOR, batch_size=64)))
    assert expected.shape == (20, 5)
    for batch_size, workers in ((1, 0), (7, 0), (7, 2)):
        source = open_data("random:20", TENSOR, batch_size=batch_size, workers=workers)
        assert torch.equal(torch.cat(tensors(source)), expected)
    longer = next(iter(open_data("random:1000", TENSOR, batch_size=20)))
    assert isinstance(longer, Tensor)
    assert torch.equal(longer, expected)
    assert len({tuple(row) for row in expected.tolist()}) == 20
    assert not torch.equal(torch.cat(tensors(open_data("random:20", TENSOR, seed=1))), expected)


def test_floats_are_standard_normal() -> None:
    source = open_data("random", Inputs("image", (3, 32, 32)), batch_size=64)
    assert (len(source), source.description["shape"]) == (50_000, [3, 32, 32])
    x = next(iter(source))
    assert isinstance(x, Tensor)
    assert x.mean().item() == pytest.approx(0, abs=0.01)
    assert x.std().item() == pytest.approx(1, abs=0.01)


def test_tokens_are_uniform_below_the_vocabulary() -> None:
    (batch,) = open_data("random:1000", Inputs("tokens", (16,), vocabulary=7), batch_size=1000)
    assert isinstance(batch, dict)
    counts = batch["input_ids"].flatten().bincount() / 16000
    torch.testing.assert_close(counts, torch.full((7,), 1 / 7), atol=0.01, rtol=0)
    assert batch["attention_mask"].all()
    assert tensors(open_data("random:2", TOKENS, length=9))[0].shape == (2, 9)


@pytest.mark.parametrize("name", ["random:", "random:0", "random:many"])
def test_invalid_counts_are_refused(name: str) -> None:
    with pytest.raises(
        InputError, match=r"expected the number of samples after the colon, got .*e\.g\. random:1000"
    ):
        open_data(name, IMAGES)


def test_tokens_need_a_vocabulary() -> None:
    with pytest.raises(InputError, match="random: expected the size of the network's vocabulary, got none"):
        open_data("random", Inputs("tokens", (4,)))


def test_an_assumed_size_gives_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"random: .*several sizes; the noise has the shape \[3, 32, 32\]"):
        open_data("random:4", Inputs("image", (3, 32, 32), size_assumed=True))
