"""Small networks as ONNX and GGUF files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

KERNEL = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
_WIDTH, _WIDER, _VOCABULARY, _HEADS, _LAYERS, _LENGTH = 16, 24, 40, 2, 2, 32


def save_onnx(
    path: Path, nodes: list[Any], shape: list[Any], tensors: dict[str, Any], kind: str = "FLOAT"
) -> str:
    """Write a graph with one input, and return its name as a model."""
    import onnx

    helper = onnx.helper
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", getattr(onnx.TensorProto, kind), shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(v, k) for k, v in tensors.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return f"onnx:{path}"


def node(kind: str, inputs: list[str], output: str, **attributes: Any) -> Any:
    import onnx

    return onnx.helper.make_node(kind, inputs, [output], name=output, **attributes)


def convolution() -> list[Any]:
    return [node("Conv", ["x", "w"], "c", kernel_shape=[3, 3]), node("Relu", ["c"], "y")]


def write_gguf(path: Path) -> None:
    """Write a Llama of two layers as a GGUF file."""
    import gguf

    drawn = np.random.default_rng(0)
    writer: Any = gguf.GGUFWriter(str(path), "llama")
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
