"""Small networks of transformers, as data: type, configuration, what it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_WORDS: dict[str, Any] = {"vocab_size": 50, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
_WIDTH: dict[str, Any] = {
    "num_hidden_layers": 3,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 48,
}
_TEXT = _WORDS | _WIDTH
_GROUPED = _TEXT | {"num_key_value_heads": 2}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2} | dict.fromkeys(
    ("moe_intermediate_size", "shared_expert_intermediate_size"), 16
)
_IMAGE = _WIDTH | {"image_size": 32, "patch_size": 8}
_STATES = _WORDS | {"hidden_size": 32, "num_hidden_layers": 3, "state_size": 4}
_STAGES: dict[str, Any] = {"hidden_sizes": [8, 16], "depths": [1, 2], "num_stages": 2}
_TWO_SIDED: dict[str, Any] = _WORDS | {
    "d_model": 32,
    "decoder_start_token_id": 1,
    **{f"{side}_layers": 2 for side in ("encoder", "decoder")},
    **{f"{side}_attention_heads": 2 for side in ("encoder", "decoder")},
    **{f"{side}_ffn_dim": 48 for side in ("encoder", "decoder")},
}


def _tokens(length: int = 7, count: int = 3) -> Tensor:
    return torch.randint(3, 50, (count, length))


def _text() -> dict[str, Tensor]:
    return {"input_ids": _tokens()}


def _two_texts() -> dict[str, Tensor]:
    return {"input_ids": _tokens(), "decoder_input_ids": _tokens(5)}


def _picture() -> dict[str, Tensor]:
    return {"pixel_values": torch.randn(2, 3, 32, 32)}


def _sound() -> dict[str, Tensor]:
    return {"input_values": torch.randn(2, 400)}


def _spectrum() -> dict[str, Tensor]:
    return {"input_features": torch.randn(2, 8, 40), "decoder_input_ids": _tokens(4, 2)}


def _both() -> dict[str, Tensor]:
    return _picture() | {"input_ids": _tokens(count=2)}


@dataclass(frozen=True)
class Tiny:
    """The configuration of a network, and what it is given."""

    config: Mapping[str, Any]
    inputs: Callable[[], dict[str, Tensor]] = _text
    trains: bool = True  # in eval mode: some write over what a backward pass needs


TRANSFORMERS = {
    "bert": Tiny(_TEXT),
    "roberta": Tiny(_TEXT),
    "distilbert": Tiny(_WORDS | {"n_layers": 3, "dim": 32, "n_heads": 2, "hidden_dim": 48}),
    "albert": Tiny(_TEXT | {"embedding_size": 16}),
    "electra": Tiny(_TEXT | {"embedding_size": 16}),
    "deberta-v2": Tiny(_TEXT),
    "modernbert": Tiny(_TEXT | {"cls_token_id": 1, "sep_token_id": 2}),
    "fnet": Tiny(_TEXT),
    "gpt2": Tiny(_WORDS | {"n_layer": 3, "n_embd": 32, "n_head": 2}),
    "gpt_neox": Tiny(_TEXT),
    "opt": Tiny(_TEXT | {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    "bloom": Tiny(_WORDS | {"n_layer": 3, "hidden_size": 32, "n_head": 2}),
    "falcon": Tiny(_TEXT),
    "phi": Tiny(_TEXT),
    "llama": Tiny(_GROUPED),
    "mistral": Tiny(_GROUPED),
    "qwen3": Tiny(_GROUPED | {"head_dim": 16}),
    "gemma2": Tiny(_GROUPED | {"head_dim": 16}),
    "mixtral": Tiny(_GROUPED | {"num_local_experts": 4}),
    "qwen2_moe": Tiny(_GROUPED | _EXPERTS),
    "mamba": Tiny(_STATES),
    "mamba2": Tiny(_STATES | {"num_heads": 4, "head_dim": 16, "n_groups": 2}),
    "rwkv": Tiny(_TEXT | {"attention_hidden_size": 32}, trains=False),
    "t5": Tiny(_WORDS | {"d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2}, _two_texts),
    "bart": Tiny(_TWO_SIDED, _two_texts),
    "whisper": Tiny(_TWO_SIDED | {"num_mel_bins": 8, "max_source_positions": 20}, _spectrum),
    "wav2vec2": Tiny(
        _TEXT
        | {
            "conv_dim": (8, 8),
            "conv_stride": (4, 2),
            "conv_kernel": (8, 4),
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 4,
            "num_conv_pos_embedding_groups": 2,
        },
        _sound,
    ),
    "vit": Tiny(_IMAGE, _picture),
    "deit": Tiny(_IMAGE, _picture),
    "beit": Tiny(_IMAGE, _picture),
    "dinov2": Tiny(_IMAGE, _picture),
    "swin": Tiny(
        {
            "image_size": 32,
            "patch_size": 4,
            "embed_dim": 8,
            "depths": [1, 1],
            "num_heads": [2, 2],
            "window_size": 4,
        },
        _picture,
    ),
    "convnext": Tiny(_STAGES, _picture),
    "convnextv2": Tiny(_STAGES, _picture),
    "resnet": Tiny(
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}, _picture
    ),
    "mobilenet_v2": Tiny({}, _picture),
    "clip": Tiny({"text_config": _TEXT, "vision_config": _IMAGE}, _both),
}

TRANSFORMERS_SMOKE = ("bert", "gpt2", "mamba", "mixtral", "t5", "convnext")
