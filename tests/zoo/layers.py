"""What torch puts around, into and in place of layers."""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.ao import quantization
from torch.nn.utils import parametrizations, parametrize, weight_norm

from tests.zoo.calls import Reused
from tests.zoo.entry import Awkward, Net


def quantised() -> nn.Module:
    layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 1), nn.Hardswish()
    network = nn.Sequential(quantization.QuantStub(), *layers, quantization.DeQuantStub())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch moves quantisation to another package
        network.train()
        network.qconfig = quantization.get_default_qat_qconfig("fbgemm")
        fused = quantization.fuse_modules_qat(network, [["1", "2", "3"]])
        prepared: nn.Module = quantization.prepare_qat(fused)
    return prepared


def weight_normed() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the older way, by a hook
        return nn.Sequential(weight_norm(nn.Linear(8, 8)), nn.ReLU())


class Positive(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return F.softplus(weight)


def positive() -> nn.Module:
    network = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    parametrize.register_parametrization(network[0], "weight", Positive())
    return network


def spectral() -> nn.Module:
    return nn.Sequential(parametrizations.spectral_norm(nn.Linear(8, 8)), nn.Tanh())


def encoder(*, nested: bool = False) -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nested tensors are a prototype
        return nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested)


def with_padding(network: nn.Module, x: Tensor) -> Any:
    padding = torch.zeros(x.shape[:2], dtype=torch.bool)
    padding[2:, 3:] = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return network(x, src_key_padding_mask=padding)


def attention() -> Net:
    part = nn.MultiheadAttention(8, 2, batch_first=True)
    return Net(lambda net, x: F.relu(net.attention(x, x, x)[0]), attention=part)


def gates() -> Net:
    """The gates of a recurrent layer are hidden in its kernel, what follows is not."""
    return Net(lambda net, x: torch.relu(net.layer(x)[0]), layer=nn.LSTM(8, 8))


def cells() -> Net:
    return Net(lambda net, x: torch.relu(net.cell(x, net.cell(x))[0]), cell=nn.LSTMCell(8, 8))


TOKENS = (6, 5, 8)

LAYERS = {
    "quantised": Awkward(
        "quantisation-aware training, fused and observed",
        quantised,
        ["1/relu", "5"],
        inputs=(4, 3, 6, 6),
        becomes="seen, also in fused layers",
    ),
    "weight normed": Awkward("weight_norm, by a hook", weight_normed, ["1"]),
    "spectral": Awkward("spectral_norm, which changes buffers", spectral, ["1"]),
    "positive": Awkward(
        "an activation of weights, as a parametrisation",
        positive,
        ["1"],
        becomes="no site: it depends on weights alone",
    ),
    "encoder": Awkward(
        "nn.TransformerEncoder, one kernel in eval mode",
        encoder,
        ["layers.0/gelu", "layers.1/gelu"],
        inputs=TOKENS,
        becomes="seen: the layer runs a second time, the slow way, and gives what the kernel gives",
    ),
    "padded encoder": Awkward(
        "the same, with nested tensors for padding",
        lambda: encoder(nested=True),
        ["layers.0/gelu", "layers.1/gelu"],
        inputs=TOKENS,
        run=with_padding,
    ),
    "encoder layer": Awkward(
        "nn.TransformerEncoderLayer alone",
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        ["/relu"],
        inputs=TOKENS,
    ),
    "decoder layer": Awkward(
        "nn.TransformerDecoderLayer, two inputs",
        lambda: nn.TransformerDecoderLayer(8, 2, 16, batch_first=True),
        ["/relu"],
        inputs=lambda: (torch.randn(*TOKENS), torch.randn(*TOKENS)),
    ),
    "attention": Awkward("nn.MultiheadAttention", attention, ["/relu"], inputs=TOKENS),
    "lstm": Awkward("the gates of nn.LSTM, nn.GRU", gates, ["/relu"], inputs=TOKENS, becomes="not seen"),
    "cells": Awkward("the gates of nn.LSTMCell", cells, ["/relu"], becomes="not seen"),
    "data parallel": Awkward(
        "nn.DataParallel without a GPU",
        lambda: nn.DataParallel(Reused(), device_ids=[]),
        ["act", "act#2"],
        becomes="the network inside is watched",
    ),
}
