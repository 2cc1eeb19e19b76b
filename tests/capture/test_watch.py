from __future__ import annotations

import copy
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fathometer import InputError
from fathometer.capture import Reduction, Site, watch
from tests import zoo
from tests.robustness.state import World, network_state
from tests.zoo import ZOO, Net


def network(name: str) -> tuple[nn.Module, Tensor]:
    return ZOO[name].network()


@contextmanager
def nothing_left_behind(model: nn.Module) -> Iterator[None]:
    before, world = network_state(model), World(model)
    yield
    assert network_state(model) == before
    assert world.changes() == []


def test_pairs_are_inputs_and_outputs() -> None:
    model, x = network("in place")
    with torch.no_grad(), watch(model) as record:
        model(x)
    first, second = record.pairs.values()
    linear, other = model[0], model[2]  # type: ignore[index]
    torch.testing.assert_close(first.x, linear(x).detach())
    torch.testing.assert_close(first.y, F.silu(first.x))
    torch.testing.assert_close(second.x, other(first.y).detach())
    torch.testing.assert_close(second.y, F.hardswish(second.x))


class TwoBlocks(nn.Module):
    """A block that ends in a ReLU, one that begins with it, and sums that are no residual sums."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
        self.norm, self.shift = nn.LayerNorm(4), nn.Parameter(torch.ones(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        first, second, third, fourth = self.layers
        inner = second(first(x).relu())
        inner += x
        x = inner.relu()  # after the sum
        x = x + third(self.norm(x + x).relu())  # after a sum, normalised
        return (fourth(x).relu() + self.shift).tanh() * (
            x + 1
        ).sigmoid()  # inside, with a weight; a sum and a number


def test_sites_know_whether_their_input_is_a_sum() -> None:
    with torch.no_grad(), watch(model := TwoBlocks()) as record:
        model(torch.randn(3, 4))
    assert [site.after_sum for site in record.sites] == [False, True, True, False, False, True]


def test_named_classes_and_functions_count_once() -> None:
    model, x = network("composite, unnamed")
    expected = model(x)
    code, defaults = zoo.tanh_and_relu.__code__, zoo.tanh_and_relu.__kwdefaults__
    with nothing_left_behind(model), watch(model, activations=[zoo.Swish, zoo.tanh_and_relu]) as record:
        assert torch.equal(model(x), expected)
    assert (zoo.tanh_and_relu.__code__, zoo.tanh_and_relu.__kwdefaults__) == (code, defaults)
    assert [site.name for site in record.sites] == ["act", "/tanh_and_relu", "/tanh_and_relu#2"]
    assert [site.operator for site in record.sites] == ["swish", "tanh_and_relu", "tanh_and_relu"]
    swish, first, second = record.pairs.values()
    torch.testing.assert_close(swish.y, F.silu(swish.x))
    torch.testing.assert_close(first.y, zoo.tanh_and_relu(first.x))
    torch.testing.assert_close(second.y, zoo.tanh_and_relu(second.x, slope=0.1))


def test_a_closure_and_a_torch_function_can_be_named() -> None:
    scale, shift = torch.tensor(2.0), torch.tensor(1.0)

    def affine_relu(x: Tensor, more: float = 0.0) -> Tensor:
        return scale * torch.relu(x) + shift + more

    x, model = torch.randn(4, 3), Net(lambda _, x: torch.sin(affine_relu(x)))
    expected = model(x)
    with watch(model, activations=[affine_relu, torch.sin]) as record:
        assert torch.equal(model(x), expected)
        assert torch.equal(affine_relu(x, 1.0), affine_relu(x) + 1)  # outside of the network: itself
    assert [site.name for site in record.sites] == ["/affine_relu", "/sin"]
    assert torch.equal(model(x), expected)


def test_pairs_add_up_over_passes_and_can_be_cleared() -> None:
    model, x = network("reused")
    with torch.no_grad(), watch(model) as record:
        model(x[:2])
        model(x[2:])
        together = record.pairs
        record.clear()
        assert record.pairs == {}
        model(x)
        assert record.samples == 12
    for a, b in zip(together.values(), record.pairs.values(), strict=True):
        torch.testing.assert_close(a.x, b.x)


def test_at_most_the_capacity_is_kept_in_one_and_the_same_memory() -> None:
    model, x = network("reused")
    with torch.no_grad(), watch(model) as free, watch(model, capacity=4) as record:
        for part in (x[:3], x[3:]):
            model(part)
        first = record.pairs
        assert {len(pair.x) for pair in first.values()} == {4}
        places = {pair.x.data_ptr() for pair in first.values()}
        expected = [pair.x[:4].clone() for pair in free.pairs.values()]
        assert all(torch.equal(a, b.x) for a, b in zip(expected, first.values(), strict=True))
        record.clear()
        assert record.pairs == {}
        model(x)
        assert {pair.x.data_ptr() for pair in record.pairs.values()} == places


@pytest.mark.parametrize(("layer", "shape"), [(nn.Linear(3, 4), (9, 3)), (nn.Conv2d(3, 4, 1), (9, 3, 5, 5))])
def test_passes_with_and_without_gradients_share_one_memory(layer: nn.Module, shape: tuple[int, ...]) -> None:
    model, x = nn.Sequential(layer, nn.ReLU()), torch.randn(shape)
    with watch(model, capacity=8) as record:
        with torch.inference_mode():
            model(x[:3])
        with torch.no_grad():
            model(x[3:6])
        model(x[6:])
    (pair,) = record.pairs.values()
    expected = model(x[:8]).detach()
    torch.testing.assert_close(pair.y, expected.flatten(2).mean(2) if expected.ndim > 2 else expected)
    assert not pair.y.requires_grad
    assert not pair.y.is_inference()


def test_a_users_hook_and_forward_of_a_torch_layer_are_seen() -> None:
    model, x = nn.Sequential(nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 5)), torch.randn(2, 5)
    model[0].register_forward_pre_hook(lambda _, args: (torch.tanh(args[0]),))
    model[1].forward = torch.relu
    with watch(model) as record:
        model(x)
    assert [site.name for site in record.sites] == ["0/tanh", "1/relu"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_pass_that_fails_leaves_what_was_kept_and_the_dtype(error: type[BaseException]) -> None:
    def body(_: Net, x: Tensor) -> Tensor:
        x = x.relu()
        if len(x) == 2:
            raise error
        return x

    model, x = Net(body), torch.randn(7, 3, dtype=torch.float64)
    with watch(model, capacity=6) as record:
        with pytest.raises(error):
            model(x[:2].float())
        model(x[:3])
        with pytest.raises(error):
            model(x[3:5])
        model(x[:4] + 1)
    (pair,) = record.pairs.values()
    assert torch.equal(pair.x, torch.cat((x[:3], x[:3] + 1)))
    assert record.samples == 7


def test_overlapping_watches_of_attention_leave_functions_visible() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    with watch(layer) as first, watch(layer) as second:
        layer(torch.randn(4, 5, 8))
    assert torch._C._is_torch_function_enabled()
    assert [site.name for site in first.sites] == [site.name for site in second.sites] == ["/relu"]


def test_overlapping_watches_leave_torch_as_it_was_and_see_the_same_functions() -> None:
    model, x = network("composite, unnamed")
    compiled = torch.compile(lambda x: torch.vmap(torch.sin)(x), backend="eager", fullgraph=True)
    with nothing_left_behind(model):
        first, second = (watch(model, activations=[zoo.tanh_and_relu]) for _ in range(2))
        one, other = first.__enter__(), second.__enter__()
        model(x)
        first.__exit__(None, None, None)
        torch.vmap(torch.sin)(x)
        model(x)
        second.__exit__(None, None, None)
    for record, passes in ((one, 1), (other, 2)):
        pairs = {site.name: len(pair.x) for site, pair in record.pairs.items()}
        assert pairs["/tanh_and_relu"] == pairs["/tanh_and_relu#2"] == passes * len(x)
    torch.testing.assert_close(compiled(x), x.sin())


def test_watches_in_threads_leave_torch_as_it_was() -> None:
    def act(x: Tensor, slope: float = 0.5) -> Tensor:
        return torch.where(x > 0, x, slope * x)

    begin = threading.Barrier(2)

    def watched(samples: int) -> list[int]:
        model = Net(lambda _, x: act(x))
        begin.wait()
        counts = []
        for _ in range(20):
            with watch(model, activations=[act]) as record:
                model(torch.randn(samples, 4))
            counts += [len(pair.x) for pair in record.pairs.values()]
        return counts

    code = act.__code__
    with nothing_left_behind(Net(lambda _, x: act(x))), ThreadPoolExecutor(2) as pool:
        found = list(pool.map(watched, (3, 5)))
        pool.shutdown()
    assert found == [[3] * 20, [5] * 20]
    assert act.__code__ is code


def test_a_pattern_that_matches_nothing_is_named() -> None:
    layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model, x = Net(lambda net, x: net.layer3(x).tanh(), layer3=layers), torch.randn(3, 4)
    with watch(model, sites=["/tanh", "layre3.*"]) as record:
        assert record.pairs == {}  # before the first pass nobody knows
        model(x)
    with pytest.raises(InputError, match=r"sites: no call matches 'layre3\.\*'; did you mean layer3"):
        _ = record.pairs
    with watch(model, sites="mlpp") as record:
        model(x)
    with pytest.raises(InputError, match="did you mean mlp"):
        _ = record.pairs
    with watch(model, sites=["layer3.*", "gelu"]) as record:  # an operator that the network does not use
        model(x)
    assert [site.name for site in record.pairs] == ["layer3.1"]


@pytest.mark.parametrize(
    "turn",
    [
        lambda h: h.transpose(np.int64(1), 2),
        lambda h: torch.transpose(h, dim0=torch.tensor(1), dim1=np.int64(2)),  # type: ignore[arg-type]
        lambda h: h.permute(0, np.int64(2), np.int64(1)),
        lambda h: h.unsqueeze(np.int64(1)).flatten(np.int64(1), np.int64(2)).transpose(1, 2),
        lambda h: h.unsqueeze(torch.tensor(3)).squeeze(np.int64(3)).mT,
    ],
)
def test_axes_may_be_whole_numbers_of_any_kind(turn: Any) -> None:
    model = Net(lambda net, x: torch.relu(turn(net.conv(x))), conv=nn.Conv1d(3, 5, 1))
    x = torch.randn(8, 3, 7)
    with watch(model) as record:
        output = model(x)
    (pair,) = record.pairs.values()
    torch.testing.assert_close(pair.y, output.mean(1).detach())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_a_pair_knows_the_resolution_of_the_network(dtype: torch.dtype) -> None:
    dense = nn.Sequential(nn.Linear(4, 4), nn.Tanh()).to(dtype)
    images = nn.Sequential(nn.Conv2d(4, 4, 1), nn.Tanh()).to(dtype)
    eps = torch.finfo(dtype).eps
    for capacity in (None, 4):
        with watch(dense, capacity=capacity) as record, watch(images, capacity=capacity) as pooled:
            dense(torch.randn(3, 4, dtype=dtype))
            images(torch.randn(3, 4, 2, 2, dtype=dtype))
        (pair,), (mean,) = record.pairs.values(), pooled.pairs.values()
        assert pair.resolution == pair.with_sides(pair.x + 1, pair.y).resolution == (eps, eps)
        assert mean.resolution == (max(eps / 2, torch.finfo(mean.y.dtype).eps),) * 2  # of 2 × 2 positions


def test_a_width_that_changes_between_passes_is_refused() -> None:
    model = nn.Sequential(nn.Conv1d(2, 3, 1), nn.ReLU())
    with watch(model, reduction="flatten", capacity=9) as record:
        model(torch.randn(4, 2, 5))
        with pytest.raises(InputError, match="1: its width changed from 15 to 18"):
            model(torch.randn(4, 2, 6))
        record.clear()
        model(torch.randn(4, 2, 6))
        assert [pair.x.shape[1] for pair in record.pairs.values()] == [18]


def test_a_network_can_be_copied_while_it_is_watched() -> None:
    def body(net: Any, x: Tensor) -> Tensor:
        return net.act(x) + copy.deepcopy(net.act)(x)

    model, x = Net(body, act=nn.Tanh()), torch.randn(4, 2)
    with watch(model) as record:
        copied = copy.deepcopy(model)
        copied(x)
        model(x)
    assert [site.name for site in record.sites] == ["act", "/tanh"]
    assert torch.equal(copied(x), model(x))


def test_only_what_the_network_itself_calls_is_seen() -> None:
    model, other = nn.ReLU(), nn.Sequential(nn.Tanh())
    x = torch.randn(4, 2)
    results: list[Tensor] = []
    with watch(model) as record:
        other(x)
        torch.sigmoid(x)
        thread = threading.Thread(target=lambda: results.append(model(x)))
        thread.start()
        thread.join()
        assert len(record.called) == 0
        model(x)
    assert [site.name for site in record.sites] == ["relu"]
    assert len(results) == 1


def after_the_seventh(site: Site) -> bool:
    return site.order > 6


@pytest.mark.parametrize(
    ("name", "sites", "expected"),
    [
        ("functional", "relu", ["/relu", "/relu#2", "/relu#3", "inner/relu"]),
        ("functional", "inner/*", ["inner/relu", "inner/silu", "inner/sigmoid"]),
        ("functional", ["/relu#?", "*silu"], ["/relu#2", "/relu#3", "inner/silu"]),
        ("functional", after_the_seventh, ["/leaky_relu", "/sigmoid"]),
        ("functional", ["inner", "tanh"], ["inner", "/tanh"]),
        ("functional", zoo.Inner, ["inner"]),
        ("functional", "module:inn*", ["inner"]),
        ("functional", "module:Inner", ["inner"]),
        ("functional", zoo.Functional, ["Functional"]),
        ("reused", nn.ReLU, ["act", "act#2"]),
        ("reused", "act", ["act", "act#2"]),
        ("reused", "module:ReLU", ["act", "act#2"]),
    ],
)
def test_sites_can_be_chosen(name: str, sites: Any, expected: list[str]) -> None:
    model, x = network(name)
    with watch(model, sites=sites) as record:
        output = model(x)
    assert [site.name for site in record.pairs] == expected
    assert torch.equal(output, model(x))


def test_whole_numbers_may_go_into_a_module() -> None:
    model, ids = nn.Sequential(nn.Embedding(10, 8)), torch.tensor([[1, 2, 3], [4, 5, 6]])
    with watch(model, sites=nn.Embedding, widths="any") as record:
        model(ids)
    (pair,) = record.pairs.values()
    assert torch.equal(pair.x, ids.float())
    assert pair.resolution == (torch.finfo(torch.float32).eps,) * 2


class FullyShardedDataParallel(nn.Module):
    """Stands for torch's class of that name, which needs a GPU."""


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (FullyShardedDataParallel(), {}, "FSDP"),
        (F.relu, {}, r"expected a torch\.nn\.Module, got function"),
        (nn.ReLU(), {"activations": [3]}, "the class itself"),
        (nn.ReLU(), {"reduction": Reduction(sample_axis=3)}, "another sample_axis"),
        (nn.ReLU(), {"sites": nn.ReLU()}, "sites: .* got ReLU; give the path of the module"),
        (nn.ReLU(), {"sites": nn.Sequential(nn.ReLU())}, "sites: .* got ReLU; give the path of the module"),
        (nn.ReLU(), {"widths": "foo"}, "widths: expected one of equal, any, got 'foo'"),
        *((nn.ReLU(), {"capacity": size}, "capacity: expected a whole number from 1") for size in (0, -3)),
        *((nn.ReLU(), {"sites": sites}, "sites: ") for sites in (3, [None], [], "module:nothing", nn.Conv2d)),
    ],
)
def test_impossible_watches_are_refused(model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message), watch(model, **options):
        model(torch.randn(4, 2))


def test_what_checkpointing_runs_again_does_not_count() -> None:
    model, x = network("checkpointed")
    with watch(model) as record:
        model(x).sum().backward()
    assert {site.name: len(pair.x) for site, pair in record.pairs.items()} == {
        "inner.act": 6,
        "inner.act#2": 6,
        "/gelu": 6,
    }


def test_pairs_inside_torch_func_are_those_of_a_plain_call() -> None:
    model, x = network("differentiated")
    for first in (False, True):
        with watch(model, reduction=Reduction(pool_first=first), capacity=6) as record:
            model(x)
        expected = model.linear(x).detach()  # type: ignore[operator]
        for pair in record.pairs.values():
            torch.testing.assert_close(pair.x, expected)
            torch.testing.assert_close(pair.y, expected.tanh())
            assert not torch._C._functorch.is_functorch_wrapped_tensor(pair.x)


def test_weights_that_pass_through_a_composite_are_no_site() -> None:
    table = nn.Parameter(torch.randn(8, 8))
    model = Net(lambda net, x: net.act(x @ net.act(net.table)), act=zoo.Swish(), table=table)
    with watch(model, activations=[zoo.Swish]) as record:
        model(torch.randn(8, 8))
    assert [site.name for site in record.sites] == ["act"]


def test_a_fused_layer_with_a_forward_of_its_own_runs_once() -> None:
    runs = 0

    class Counting(nn.TransformerEncoderLayer):
        def forward(self, src: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            nonlocal runs
            runs += 1
            src.add_(1)
            return super().forward(src, *args, **kwargs)

    model = nn.Sequential(Counting(8, 2, 16, batch_first=True)).eval()
    x = torch.randn(3, 5, 8)
    with torch.no_grad():
        expected = model(x.clone())
        with watch(model) as record:
            output = model(x.clone())
    assert runs == 2
    torch.testing.assert_close(output, expected)
    assert [site.name for site in record.sites] == ["0/relu"]


def test_a_fused_layer_gives_what_its_kernel_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = network("encoder layer")
    kernel, calls = torch._transformer_encoder_layer_fwd, 0

    def counted(*args: Any, **kwargs: Any) -> Tensor:
        nonlocal calls
        calls += 1
        return kernel(*args, **kwargs) + 1e-3  # so that the way taken can be told from the result

    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", counted)
    with torch.no_grad():
        expected = model(x)
        with watch(model) as record:
            output = model(x)
    assert calls == 2
    assert torch.equal(output, expected)
    assert [site.name for site in record.pairs] == ["/relu"]


def test_routed_rows_are_samples_and_merged_rows_are_positions() -> None:
    def body(net: Any, x: Tensor) -> Tensor:  # [n, t, 3]
        flat = x.reshape(-1, 3)
        torch.relu(net.layer(flat))
        chosen = flat[flat[:, 0] > 0]
        torch.tanh(net.layer(chosen))
        torch.sigmoid(net.layer(chosen[:0]))
        return x

    torch.manual_seed(0)
    model, x = Net(body, layer=nn.Linear(3, 4)), torch.randn(8, 6, 3)
    found = []
    for size in (1, 3, 8):
        with torch.no_grad(), watch(model) as record:
            for part in x.split(size):
                model(part)
        found.append({site.name: pair.x for site, pair in record.pairs.items()})
        assert {name: len(rows) for name, rows in found[-1].items()} == {
            "/relu": 8,
            "/tanh": int((x[..., 0] > 0).sum()),
        }
    for other in found[1:]:
        for name, rows in other.items():
            torch.testing.assert_close(rows, found[0][name])


def test_keywords_and_equal_names_of_a_module_and_a_function() -> None:
    def body(net: Any, *, values: Tensor) -> Tensor:
        return F.relu(net.relu(net.norm(input=values)) - 1)

    model, x = Net(body, norm=nn.LayerNorm(3), relu=nn.ReLU()), torch.randn(4, 3)
    with watch(model, sites=["norm", "relu"]) as record:
        model(values=x)
    pairs = {site.name: pair for site, pair in record.pairs.items()}
    assert list(pairs) == ["norm", "relu", "/relu"]
    assert torch.equal(pairs["norm"].x, x)


def test_pooling_first_applies_the_activation_to_what_was_pooled() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 5, 3), nn.SiLU(inplace=True), nn.Conv2d(5, 4, 3), nn.LeakyReLU(0.3))
    x = torch.randn(4, 3, 9, 9)
    with torch.no_grad(), watch(model, reduction=Reduction(pool_first=True)) as record:
        output = model(x)
    silu, leaky = record.pairs.values()
    torch.testing.assert_close(silu.y, F.silu(silu.x))
    torch.testing.assert_close(leaky.y, F.leaky_relu(leaky.x, 0.3))
    assert torch.equal(output, model(x))

    class InPlaceSwish(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.mul_(x.sigmoid())

    swish = nn.Sequential(InPlaceSwish())
    with watch(swish, activations=[InPlaceSwish], reduction=Reduction(pool_first=True)) as record:
        swish(torch.randn(4, 5, 3))
    (pair,) = record.pairs.values()
    torch.testing.assert_close(pair.y, F.silu(pair.x))
    with (
        watch(model, sites="0", reduction=Reduction(pool_first=True)),
        pytest.raises(InputError, match="0: pooling first"),
    ):
        model(x)


def test_code_compiled_in_forward_runs_uncompiled_without_warnings() -> None:
    script = """
import sys, warnings, torch
from torch import nn
from fathometer.capture import watch

class Net(nn.Module):
    def forward(self, x):
        with warnings.catch_warnings():
            return torch.compile(lambda x: torch.relu(x - 1), backend=refused)(x) + self.more(x)

    def more(self, x):
        return torch.compile(nn.Tanh(), backend=refused)(x)

def refused(*_):
    raise RuntimeError("this was compiled")

net = Net()
with watch(net) as record:
    assert "torch._dynamo" not in sys.modules
    net(torch.randn(4, 3))
assert torch._dynamo.eval_frame._stance.stance == "default"
print([site.name for site in record.sites])
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", timeout=120)
    assert told.stderr == ""
    assert told.stdout.split("\n")[0] == "['/relu', '/tanh']"
