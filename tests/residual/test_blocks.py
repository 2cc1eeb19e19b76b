from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from fathometer import InputError, residual_path
from fathometer.capture.blocks import find_activation, find_blocks
from fathometer.capture.trace import traced
from tests.residual.networks import LANGUAGE, Block, Gated


def found(model: nn.Module, given: object, *patterns: str) -> tuple[list[str], str | None]:
    """The blocks, and their activation."""
    with torch.no_grad(), traced(model.eval(), 2) as calls:
        model(**given) if isinstance(given, dict) else model(given)
    blocks = find_blocks(calls, patterns or None)
    activation = find_activation(blocks)
    return [block.path for block in blocks], activation and activation.operator


class Pair(nn.Module):
    """Two residual parts in a row; its own forward adds nothing, or once more around both."""

    def __init__(self, around: bool = False, kinds: tuple[type[nn.Module], ...] = ()) -> None:
        super().__init__()
        first, second = kinds or (Block, Block)
        self.first, self.second, self.around = first(8, 8), second(8, 8), around

    def forward(self, x: Tensor) -> Tensor:
        out = self.second(self.first(x))
        return x + out if self.around else out


class Other(Block):
    pass


class Tuple(nn.Module):
    """With keywords, and a result in a tuple, as transformers have it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner, self.act = nn.LayerNorm(8), nn.Linear(8, 8), nn.GELU()

    def forward(self, *, hidden: Tensor, scale: float) -> tuple[Tensor, None]:
        return self.norm(hidden * scale + self.act(self.inner(hidden)).view(-1, 8)), None


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = Tuple()
        self.layers = nn.ModuleList([self.layer, self.layer, Tuple()])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x, _ = layer(hidden=x, scale=0.9)
        return x


class Twice(nn.Module):
    """What is no residual sum: with its own activation, a bias, positions, a mean."""

    def __init__(self) -> None:
        super().__init__()
        self.bias, self.table = nn.Parameter(torch.ones(8)), nn.Parameter(torch.ones(1, 8))

    def forward(self, x: Tensor) -> Tensor:
        x = x + x.relu() + self.bias + self.table.expand(len(x), -1)
        return torch.tanh(x) - x.mean(1, keepdim=True)


AWKWARD: dict[str, tuple[Callable[[], nn.Module], list[str], str | None]] = {
    "a chain of pairs": (
        lambda: nn.Sequential(Pair(), Pair()), ["0.first", "0.second", "1.first", "1.second"], "leaky_relu"
    ),
    "pairs with a sum around": (lambda: nn.Sequential(Pair(True), Pair(True)), ["0", "1"], "leaky_relu"),
    "two kinds of parts": (
        lambda: nn.Sequential(*(Pair(kinds=(Block, Other)) for _ in range(2))), ["0", "1"], "leaky_relu"
    ),
    "tuples, keywords, shared": (Stack, ["layer", "layer", "layers.2"], "gelu"),
    "gates": (lambda: nn.Sequential(Gated(), Gated()), ["0", "1"], "relu"),
    "stages of one": (
        lambda: nn.Sequential(*(nn.Sequential(Block(8, 8)) for _ in range(3))),
        ["0.0", "1.0", "2.0"], "leaky_relu",
    ),
    "fused transformer": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 9), 2, enable_nested_tensor=False),
        ["layers.0", "layers.1"], "relu",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AWKWARD)
def test_blocks_of_awkward_networks(name: str) -> None:
    build, blocks, activation = AWKWARD[name]
    assert found(build(), torch.randn(2, 8)) == (blocks, activation)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: nn.Sequential(Twice(), Twice()), "no module that is called repeatedly adds its input"),
        (lambda: nn.Sequential(nn.Linear(8, 8), Block(8, 8)), "only 1 adds its input to its output, once"),
        (
            lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)),
            r"Give patterns of names or classes, such as Linear",
        ),
        (lambda: Twice(), r"classes; it has no parts that repeat"),
    ],
)
def test_a_network_without_blocks_is_refused(build: Callable[[], nn.Module], message: str) -> None:
    with pytest.raises(InputError, match=message):
        residual_path(build(), torch.randn(20, 8), samples=10)


UNSEEN: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "lerp": lambda x, y: torch.lerp(x, y, 0.5),
    "a sum of a stack": lambda x, y: torch.stack([x, y]).sum(0),
    "addcmul": lambda x, y: torch.addcmul(x, y, torch.ones(8)),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_blocks_with_undetected_sums_can_be_given(name: str) -> None:
    """As the documents say; if one of these is seen one day, they should no longer."""

    class Hidden(Block):
        def forward(self, x: Tensor) -> Tensor:
            return UNSEEN[name](x, self.inner(torch.relu(x)))

    model, x = nn.Sequential(Hidden(8, 8), Hidden(8, 8)), torch.randn(2, 8)
    with pytest.raises(InputError, match="no residual blocks found"):
        found(model, x)
    assert found(model, x, "Hidden") == (["0", "1"], "relu")


def test_blocks_can_be_given() -> None:
    model = nn.Sequential(Pair(), nn.Linear(8, 8), Pair())
    x = torch.randn(2, 8)
    assert found(model, x, "Pair")[0] == ["0", "2"]
    assert found(model, x, "0.*", "1")[0] == ["0.first", "0.second", "1"]
    assert found(model, x, "*")[0] == ["0", "1", "2"]
    with pytest.raises(InputError, match=r"no module that is called is 'layer\*'.*such as 0\.\*, 2\.\*, "):
        found(model, x, "0", "layer*")
    plain = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 8))
    path = residual_path(plain, torch.randn(20, 8), samples=20, blocks="Linear")
    assert path.provenance.settings["path"]["sigma"] == "tanh"  # which no block calls, but the network
    path = residual_path(model, torch.randn(20, 8), samples=20, blocks=["Pair", "1"])
    assert [site.name for site in path.sites] == ["0", "1", "2"]
    assert path.provenance.settings["path"]["blocks"] == "given"


LIBRARIES = {
    "torchvision:resnet18": (["layer1.0", "layer4.1"], 8, "relu"),
    "torchvision:resnet50": (["layer1.0", "layer4.2"], 16, "relu"),
    "torchvision:vit_b_16": (
        ["encoder.layers.encoder_layer_0", "encoder.layers.encoder_layer_11"], 12, "gelu"
    ),
    "torchvision:swin_t": (["features.1.0", "features.7.1"], 12, "gelu"),
    "torchvision:convnext_tiny": (["features.1.0", "features.7.2"], 18, "gelu"),
    "torchvision:mobilenet_v2": (["features.1", "features.17"], 17, "relu6"),
    "torchvision:efficientnet_b0": (["features.1.0", "features.7.0"], 16, "silu"),
    "torchvision:regnet_y_400mf": (
        ["trunk_output.block1.block1-0", "trunk_output.block4.block4-5"], 16, "relu"
    ),
    "timm:vit_tiny_patch16_224": (["blocks.0", "blocks.11"], 12, "gelu"),
    "timm:resnet18": (["layer1.0", "layer4.1"], 8, "relu"),
    "timm:convnext_atto": (["stages.0.blocks.0", "stages.3.blocks.1"], 12, "gelu"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIBRARIES)
def test_blocks_of_the_vision_libraries(name: str) -> None:
    from fathometer.models import load_model

    ends, count, activation = LIBRARIES[name]
    side = 224 if "vit" in name else 64
    blocks, sigma = found(load_model(name, "none").module, torch.randn(1, 3, side, side))
    assert ([blocks[0], blocks[-1]], len(blocks), sigma) == (ends, count, activation)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("torchvision:maxvit_t", 33), ("torchvision:mobilenet_v3_small", 11),
        ("timm:beit_base_patch16_224", 12), ("timm:cait_xxs24_224", 24), ("timm:convmixer_768_32", 32),
        ("timm:convnextv2_atto", 12), ("timm:deit_tiny_patch16_224", 12), ("timm:edgenext_xx_small", 12),
        ("timm:efficientnet_b0", 15), ("timm:eva02_tiny_patch14_224", 12), ("timm:focalnet_tiny_srf", 12),
        ("timm:ghostnet_050", 16), ("timm:gmlp_ti16_224", 30), ("timm:hiera_tiny_224", 12),
        ("timm:levit_128s", 9), ("timm:mixer_s32_224", 8), ("timm:mnasnet_050", 16),
        ("timm:mobilenetv3_small_050", 10), ("timm:mobilevit_xxs", 16), ("timm:nfnet_f0", 12),
        ("timm:poolformer_s12", 12), ("timm:pvt_v2_b0", 8), ("timm:regnetx_002", 13),
        ("timm:repvgg_a0", 22), ("timm:res2net50_26w_4s", 16), ("timm:resmlp_12_224", 12),
        ("timm:resnetv2_50", 16), ("timm:resnext50_32x4d", 16), ("timm:seresnet18", 8),
        ("timm:swin_tiny_patch4_window7_224", 12), ("timm:tf_efficientnetv2_b0", 20),
        ("timm:xcit_nano_12_p16_224", 12),
    ],
)  # fmt: skip
def test_blocks_of_more_vision_networks(name: str, count: int) -> None:
    from fathometer.models import load_model

    blocks, sigma = found(load_model(name, "none").module, torch.randn(1, 3, 224, 224))
    assert len(blocks) == count
    assert sigma in {"relu", "gelu", "silu", "hardswish"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["timm:resnest14d", "timm:coat_tiny"])
def test_networks_whose_blocks_are_not_found(name: str) -> None:
    """All shortcuts projected; a stream that is cut apart and concatenated again."""
    from fathometer.models import load_model

    with pytest.raises(InputError, match="no residual blocks found"):
        found(load_model(name, "none").module, torch.randn(1, 3, 224, 224))


@pytest.mark.slow
@pytest.mark.parametrize("kind", LANGUAGE)
def test_blocks_of_language_models(kind: str) -> None:
    from fathometer.models import ensure_torchvision_operators

    ensure_torchvision_operators()
    transformers = pytest.importorskip("transformers")
    sizes, name = LANGUAGE[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = transformers.AutoConfig.for_model(kind, vocab_size=50, pad_token_id=0, **sizes)
        model = transformers.AutoModel.from_config(config)
        tokens = {"input_ids": torch.randint(3, 50, (2, 7))}
        if kind == "t5":
            tokens["decoder_input_ids"] = tokens["input_ids"]
        blocks, sigma = found(model, tokens)
    expected = [name] * 3 if kind == "albert" else [f"{name}.{number}" for number in range(3)]
    if kind == "t5":
        expected += [f"decoder.block.{number}" for number in range(3)]
    assert blocks == expected
    assert sigma is not None
