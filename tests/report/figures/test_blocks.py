from __future__ import annotations

import pytest
import torch

from fathometer.capture import Site, watch
from fathometer.models import load_model
from fathometer.report.blocks import Block, blocks_of


def own(*paths: str) -> list[Site]:
    """Modules that are activations, `a.b.relu`."""
    return [Site(path, "relu", 1, order, True) for order, path in enumerate(paths)]


def labels(sites: list[Site]) -> dict[str, int]:
    """Sites in each block."""
    found = blocks_of(sites)
    assert [block.start for block in found] == [0, *(block.stop for block in found[:-1])]
    assert found[-1].stop == len(sites)
    return {block.label: len(block) for block in found}


DENSE = "features denseblock1 transition1 denseblock2 transition2 denseblock3 transition3 denseblock4 /relu"
INCEPTIONS = "3a 3b 4a 4b 4c 4d 4e 5a 5b".split()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("resnet18", {"relu": 1} | {f"layer{i}.{j}": 2 for i in (1, 2, 3, 4) for j in (0, 1)}),
        ("vgg16", {"features": 13, "classifier": 2}),
        ("densenet121", dict(zip(DENSE.split(), (1, 12, 1, 24, 1, 48, 1, 32, 1), strict=True))),
        ("vit_b_16", {f"encoder_layer_{i}": 1 for i in range(12)}),
        ("swin_t", {"features.1": 2, "features.3": 2, "features.5": 6, "features.7": 2}),
        ("googlenet", {f"conv{i}": 1 for i in (1, 2, 3)} | {f"inception{name}": 6 for name in INCEPTIONS}),
    ],
)
def test_blocks_of_torchvision(name: str, expected: dict[str, int]) -> None:
    side = 224 if name.startswith("vit") else 64
    with torch.device("meta"), torch.no_grad():  # shapes are enough
        net = load_model(f"torchvision:{name}", "none").module.eval()
        with watch(net) as record:
            net(torch.zeros(2, 3, side, side))
    assert labels(list(record.sites)) == expected
    if name == "vit_b_16":
        whole = Block("encoder.layers.encoder_layer_0", "encoder_layer_0", 0, 1)
        assert blocks_of(list(record.sites))[0] == whole


def test_many_equal_layers_are_put_together() -> None:
    found = blocks_of(own(*(f"model.layers.{i}.mlp.act_fn" for i in range(30))))
    assert len(found) == 15
    assert (found[0].name, found[0].label, len(found[0])) == ("model.layers.0–1", "layers.0–1", 2)
    assert found[-1].name == "model.layers.28–29"
    odd = blocks_of([*own(*(f"layers.{i}.act" for i in range(41))), Site("", "relu", 1, 41, False)])
    assert [len(block) for block in odd] == [3] * 13 + [2, 1]
    assert odd[-2].name == "layers.39–40"


def test_deep_networks_keep_their_stages() -> None:
    stages = own(
        *(f"layer{s}.{b}.relu" for s, count in ((1, 3), (2, 8), (3, 36), (4, 3)) for b in range(count))
    )
    assert labels(stages) == {"layer1": 3, "layer2": 8, "layer3": 36, "layer4": 3}


def test_a_flat_network_is_one_block_and_none_has_none() -> None:
    assert labels(own(*(str(i) for i in range(500)))) == {"network": 500}
    assert labels(own("relu")) == {"relu": 1}
    assert blocks_of([]) == ()


def test_a_module_called_again_is_another_block() -> None:
    found = blocks_of(own("a.x.relu", "a.y.relu", "b.x.relu", "b.y.relu", "a.x.relu", "a.y.relu"))
    assert [(block.name, block.start, block.stop) for block in found] == [
        ("a", 0, 2),
        ("b", 2, 4),
        ("a", 4, 6),
    ]
