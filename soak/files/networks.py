"""Files of whole networks, tiny ones, of the formats that are loaded by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fathometer import measure
from fathometer.data import open_data
from fathometer.models import load_model
from fathometer.models.torchvision_operators import ensure_torchvision_operators
from soak.files.checks import check_sounding

_WIDTH, _WIDER, _VOCABULARY, _HEADS, _LAYERS, _LENGTH = 16, 24, 40, 2, 2, 32


def onnx_network(folder: Path) -> Callable[[Path], None]:
    """A convolution and its ReLU."""
    import onnx

    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    kernel = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], name="c", kernel_shape=[3, 3]),
            helper.make_node("Relu", ["c"], ["y"], name="y"),
        ],
        "small",
        [helper.make_tensor_value_info("x", floats, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", floats, None)],
        [onnx.numpy_helper.from_array(kernel, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, folder / "net.onnx")
    return lambda place: _measured("onnx:", place, "net.onnx")


def gguf_network(folder: Path) -> Callable[[Path], None]:
    """A Llama of two layers."""
    import gguf

    drawn = np.random.default_rng(0)
    writer: Any = gguf.GGUFWriter(str(folder / "net.gguf"), "llama")
    writer.add_context_length(_LENGTH)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_WIDER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(_VOCABULARY)
    writer.add_tokenizer_model("llama")
    words = [b"<unk>", b"<s>", b"</s>", *(f"w{number}".encode() for number in range(_VOCABULARY - 3))]
    writer.add_token_list(words)
    writer.add_token_scores([0.0] * _VOCABULARY)
    writer.add_token_types([2, 3, 3] + [1] * (_VOCABULARY - 3))
    shapes = {"token_embd": (_VOCABULARY, _WIDTH), "output": (_VOCABULARY, _WIDTH), "output_norm": (_WIDTH,)}
    for layer in range(_LAYERS):
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            shapes[f"blk.{layer}.{part}"] = (_WIDTH, _WIDTH)
        for part in ("attn_norm", "ffn_norm"):
            shapes[f"blk.{layer}.{part}"] = (_WIDTH,)
        for part in ("ffn_gate", "ffn_up"):
            shapes[f"blk.{layer}.{part}"] = (_WIDER, _WIDTH)
        shapes[f"blk.{layer}.ffn_down"] = (_WIDTH, _WIDER)
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", drawn.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return lambda place: _measured("hf:", place, "net.gguf")


def transformers_network(folder: Path) -> Callable[[Path], None]:
    """A folder as `save_pretrained` leaves it: a GPT-2 of two layers."""
    ensure_torchvision_operators()
    import transformers

    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(
        "gpt2",
        n_layer=_LAYERS,
        n_embd=_WIDTH,
        n_head=_HEADS,
        n_positions=_LENGTH,
        vocab_size=_VOCABULARY,
        bos_token_id=0,
        eos_token_id=1,
    )
    network: Any = transformers.AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    network.save_pretrained(folder / "net")
    return lambda place: _measured("hf:", place, "net")


def _measured(source: str, place: Path, name: str) -> None:
    """Loaded, and run on noise: a network that cannot be run is refused there."""
    model = load_model(f"{source}{place / name}")
    noise = open_data("random:8", model.inputs, batch_size=4)
    found = measure(model.module, noise, samples=8, gauges=["norm"], batch_size=4)
    check_sounding(found, place / "s.json")
