"""Fold lines into the layers beside them, and merge consecutive linear layers, where that is exact."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from fathometer.errors import InputError, first_line
from fathometer.linearizing.maps import MAPS, ChannelMap, FullMap, SlopeMap
from fathometer.linearizing.outputs import check_finite, forward
from fathometer.linearizing.slots import replacer_of
from fathometer.measuring.batches import as_tensors
from fathometer.measuring.loop import evaluating

_TOLERANCE = 1e-5  # of the outputs, relative to the largest
_LINES = (ChannelMap, SlopeMap)
_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm, nn.InstanceNorm2d)


def fold(network: nn.Module, example: Any) -> fx.GraphModule:
    """Return a linearized network with fewer operations and the same outputs, for inference.

    A line after a convolution, a linear layer or a normalisation becomes part of it, if nothing else reads
    its output; before a linear layer, part of that one. BatchNorm becomes part of the layer before it. Two
    consecutive linear layers, or a convolution and one of 1 × 1, become one where that has fewer weights.
    The network is traced by torch.fx in eval mode.

    Args:
        network: the result of `linearize`.
        example: one batch of the data, on which both networks must agree to 1e-5 of the largest output.

    Raises:
        InputError: if torch.fx cannot trace the network, or if the outputs differ.
    """
    replacer = replacer_of(network)
    if replacer is None:
        raise InputError("expected a network that `linearize` returned", parameter="network")
    if any(weight.is_floating_point() and weight.element_size() < 4 for weight in network.parameters()):
        raise InputError(
            "folding needs float32 weights, because the outputs must agree to 1e-5; call `.float()` on the "
            "network first",
            parameter="network",
        )
    device = next((weight.device for weight in network.parameters()), torch.device("cpu"))
    value = as_tensors(example)
    check_finite(value, "example")
    with torch.no_grad(), evaluating(network), full_precision():
        wanted = forward(network, value, device)
        folded = _traced(copy.deepcopy(network), len(replacer.slots))
        _fold_norms(folded)
        _fold_lines(folded)
        _fold_norms(folded)  # those that come after a line
        _merge_layers(folded)
        folded.graph.lint()
        folded.delete_all_unused_submodules()
        folded.recompile()
        found = forward(folded.eval(), value, device)
    if not isinstance(wanted, Tensor) or not isinstance(found, Tensor):
        raise InputError("expected a network that returns one tensor", parameter="network")
    error = float((found - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30))
    if not error <= _TOLERANCE:
        raise InputError(
            f"the folded network differs by {error:.1e} of the largest output, so that it is not used; its "
            "forward does what torch.fx cannot follow",
            parameter="network",
        )
    return folded


@contextmanager
def full_precision() -> Iterator[None]:
    """Compute in float32 for a while, where a GPU would use TF32 with its 10 bits."""
    before, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn
    torch.set_float32_matmul_precision("highest")
    try:
        with cudnn.flags(cudnn.enabled, cudnn.benchmark, None, cudnn.deterministic, allow_tf32=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


class _Tracer(fx.Tracer):
    """Sees lines as layers, and what they replace not at all."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Look into modules whose forward was replaced."""
        if isinstance(m, (*_LINES, FullMap)):
            return True
        return "forward" not in vars(m) and super().is_leaf_module(m, module_qualified_name)


def _traced(network: nn.Module, lines: int) -> fx.GraphModule:
    """Return the network as a graph in which every line is one node."""
    replacer = replacer_of(network)
    assert replacer is not None
    try:
        with replacer.tracing():
            graph = _Tracer().trace(network)
    except Exception as error:  # whatever a forward pass may raise on proxies
        raise InputError(
            f"torch.fx cannot trace this network ({type(error).__name__}: {first_line(error)}), so that its "
            "lines cannot be folded; it can be used as it is",
            parameter="network",
        ) from error
    traced = fx.GraphModule(network, graph)
    modules = dict(traced.named_modules())
    seen = [n for n in graph.nodes if n.op == "call_module" and MAPS in n.target.split(".")]
    if len(seen) != lines:
        raise InputError(
            f"torch.fx sees {len(seen)} of the {lines} lines, so that they cannot be folded (not those "
            "of calls such as x.relu(), or inside torch's transformer layers); the network can be used as it "
            "is",
            parameter="network",
        )
    for node in [node for node in graph.nodes if node.op == "call_module"]:
        module = modules[node.target]
        if isinstance(module, nn.Identity | nn.modules.dropout._DropoutNd):  # which do nothing in eval mode
            node.replace_all_uses_with(node.all_input_nodes[0])
            graph.erase_node(node)
        elif isinstance(module, FullMap) and module.axis == -1:
            traced.set_submodule(node.target, module.linear)
    traced.recompile()
    return traced


def _fold_lines(traced: fx.GraphModule) -> None:
    for node in list(traced.graph.nodes):
        line = _module(traced, node)
        if not isinstance(line, _LINES):
            continue
        source = node.args[0]
        layer = _module(traced, source)
        if len(source.users) == 1 and _is_alone(traced, source) and _scale_output(layer, line):
            node.replace_all_uses_with(source)
            traced.graph.erase_node(node)
            continue
        users = list(node.users)
        layers = [_module(traced, user) for user in users]
        if all(_takes_line(each, line) for each in layers) and all(_is_alone(traced, u) for u in users):
            for each in layers:
                _scale_input(each, line)
            node.replace_all_uses_with(source)
            traced.graph.erase_node(node)


def _scale_output(layer: Any, line: Any) -> bool:
    """Make a line part of the layer before it, if that has the channels where the line has them."""
    if isinstance(line, ChannelMap):
        axes = [-1] if isinstance(layer, nn.Linear | nn.LayerNorm) else [1]
        if isinstance(layer, nn.BatchNorm1d):  # of a matrix, axis 1 is the last one
            axes = [1, -1]
        if line.axis not in axes:
            return False
    if isinstance(layer, nn.LayerNorm):
        fits = layer.weight is not None and layer.weight.ndim == 1
    elif isinstance(layer, _NORMS):
        fits = layer.weight is not None
    else:
        fits = isinstance(layer, _LAYERS)
    if not fits:
        return False
    weight = layer.weight
    slope = line.slope.to(weight)
    zero = weight.new_zeros(len(weight))
    shift = line.intercept.to(weight) if isinstance(line, ChannelMap) else zero
    bias = zero if layer.bias is None else layer.bias
    shape = [-1 if slope.ndim else 1] + [1] * (weight.ndim - 1)
    layer.weight = nn.Parameter(weight * slope.view(shape))
    layer.bias = nn.Parameter(bias * slope + shift)
    return True


def _takes_line(layer: Any, line: Any) -> bool:
    """Tell whether a line can be part of a layer after it; an intercept would change what pads an image."""
    if isinstance(line, SlopeMap):
        return isinstance(layer, _LAYERS)
    return isinstance(layer, nn.Linear) and line.axis == -1


def _scale_input(layer: Any, line: Any) -> None:
    """Make a line part of the layer after it."""
    if isinstance(line, ChannelMap):
        shift = layer.weight @ line.intercept.to(layer.weight)
        layer.bias = nn.Parameter(shift if layer.bias is None else layer.bias + shift)
    layer.weight = nn.Parameter(layer.weight * line.slope.to(layer.weight))


def _fold_norms(traced: fx.GraphModule) -> None:
    """Make each BatchNorm part of the layer before it, if nothing else reads that layer's output."""
    for node in list(traced.graph.nodes):
        norm = _module(traced, node)
        if not isinstance(norm, nn.modules.batchnorm._BatchNorm) or norm.running_mean is None:
            continue
        source: Any = node.all_input_nodes[0]
        layer = _module(traced, source)
        if not isinstance(layer, _LAYERS) or len(source.users) > 1 or not _is_alone(traced, source):
            continue
        is_linear = isinstance(layer, nn.Linear)
        if is_linear and norm.num_features != layer.out_features:  # channels are not the last axis
            continue
        fuse: Any = fuse_linear_bn_eval if is_linear else fuse_conv_bn_eval
        traced.set_submodule(source.target, fuse(layer, norm))
        node.replace_all_uses_with(source)
        traced.graph.erase_node(node)


def _merge_layers(traced: fx.GraphModule) -> None:
    """Merge consecutive layers, where the product has fewer weights."""
    for node in list(traced.graph.nodes):
        if not node.args or not isinstance(node.args[0], fx.Node):
            continue
        source: Any = node.args[0]
        first, second = _module(traced, source), _module(traced, node)
        alone = _is_alone(traced, source) and _is_alone(traced, node) and len(source.users) == 1
        merged = _product(first, second) if alone else None
        if merged is None:
            continue
        traced.set_submodule(node.target, merged)
        source.replace_all_uses_with(source.all_input_nodes[0])
        traced.graph.erase_node(source)


def _product(first: Any, second: Any) -> Any:
    """Return two layers as one, if that is exact and has fewer weights."""
    if type(first) is not type(second) or not isinstance(first, _LAYERS):
        return None
    if not isinstance(first, nn.Linear):
        shape: list[int] = [*second.kernel_size, *second.stride]
        is_pointwise = set(shape) == {1} and set(second.padding) == {0}
        if not is_pointwise or first.groups != 1 or second.groups != 1:
            return None
    after, before = second.weight.flatten(1), first.weight.flatten(1)
    if after.shape[0] * before.shape[1] >= after.numel() + before.numel():
        return None
    merged = copy.copy(first)
    merged._parameters = dict(first._parameters)
    bias = after @ first.bias if first.bias is not None else torch.zeros_like(after[:, 0])
    merged.weight = nn.Parameter((after @ before).unflatten(1, first.weight.shape[1:]))
    merged.bias = nn.Parameter(bias if second.bias is None else bias + second.bias)
    if isinstance(first, nn.Linear):
        merged.out_features = second.out_features
    else:
        merged.out_channels = second.out_channels
    return merged


def _module(traced: fx.GraphModule, node: Any) -> Any:
    is_call = isinstance(node, fx.Node) and node.op == "call_module"
    return traced.get_submodule(str(node.target)) if is_call else None


def _is_alone(traced: fx.GraphModule, node: Any) -> bool:
    """Tell whether a layer is called once, and shares its weight with no other."""
    layer = _module(traced, node)
    if layer is None or not isinstance(getattr(layer, "weight", None), Tensor):
        return False
    calls = [other for other in traced.graph.nodes if other.op == "call_module"]
    holders = {
        id(module)
        for module in traced.modules()
        for weight in module._parameters.values()
        if weight is layer.weight
    }
    return sum(_module(traced, call) is layer for call in calls) == 1 and len(holders) == 1
