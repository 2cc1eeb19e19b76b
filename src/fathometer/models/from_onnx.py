"""`onnx:FILE`: a graph that onnx2torch turns into modules; the graph describes its input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fathometer.data import Inputs
from fathometer.errors import InputError, first_line
from fathometer.models.inputs import ResizeAndNormalise
from fathometer.models.sources import SourceResult, import_optional

_SIDE, _LENGTH = 224, 128  # of images and of tokens, where the graph leaves the size open


def load(name: str, weights: str | Path) -> SourceResult:
    """Load the network. Images get ImageNet's normalisation, because a graph does not say which it needs."""
    path = Path(name).expanduser()
    if weights == "none":
        raise InputError(f"onnx:{name}: an ONNX file holds its weights; leave `weights` out")
    if not path.is_file():
        raise InputError(f"onnx:{name}: no such file")
    onnx, onnx2torch = (
        import_optional(package, extra="onnx", purpose="an onnx: model") for package in ("onnx", "onnx2torch")
    )
    try:
        graph = onnx.load(path)
        inputs = _inputs(onnx, graph.graph, name)
        module = onnx2torch.convert(graph)
    except InputError:
        raise
    except NotImplementedError as error:
        raise InputError(f"onnx:{name}: onnx2torch cannot convert it ({first_line(error)})") from error
    except Exception as error:  # protobuf, onnx and onnx2torch have no error in common
        raise InputError(f"onnx:{name}: not a readable ONNX file ({first_line(error)})") from error
    return module, path.name, inputs


def _inputs(onnx: Any, graph: Any, name: str) -> Inputs:
    constants = {i.name for i in graph.initializer}
    entries = [i for i in graph.input if i.name not in constants]
    if len(entries) != 1:
        found = ", ".join(i.name for i in entries) or "none"
        raise InputError(f"onnx:{name}: expected one input, got {len(entries)} ({found})")
    tensor = entries[0].type.tensor_type
    sizes = [d.dim_value for d in tensor.shape.dim][1:]  # an open axis has the value 0
    if tensor.elem_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32):
        return Inputs("tokens", (sizes[0] or _LENGTH,), vocabulary=_vocabulary(graph, entries[0].name, name))
    if len(sizes) == 3 and sizes[0] in (1, 3):
        shape = (sizes[0], sizes[1] or _SIDE, sizes[2] or _SIDE)
        return Inputs("image", shape, preprocess=ResizeAndNormalise(*shape))
    if not sizes or 0 in sizes:
        raise InputError(
            f"onnx:{name}: its input {entries[0].name!r} has the open shape {sizes} beside the batch; "
            "export it with a fixed one"
        )
    return Inputs("tensor", tuple(sizes))


def _vocabulary(graph: Any, tokens: str, name: str) -> int:
    """Return the number of rows of the table that the tokens look up."""
    tables = {i.name: i.dims[0] for i in graph.initializer}
    for node in graph.node:
        if node.op_type == "Gather" and node.input[1] == tokens and node.input[0] in tables:
            return int(tables[node.input[0]])
    raise InputError(f"onnx:{name}: its input {tokens!r} takes whole numbers, but is used in no Gather")
