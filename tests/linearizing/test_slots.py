"""Every awkward network: its calls are found, run as they did, and are replaced without a change of code."""

from __future__ import annotations

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from fathometer import InputError, linearize
from fathometer.capture.intercept import eager
from fathometer.linearizing.search import copied, find_slots
from fathometer.linearizing.slots import Replacer, Slot
from tests.zoo import ZOO, Net, Swish, tanh_and_relu
from tests.zoo.entry import Made

NOT_COPIED = {"lazy", "weight normed"}  # torch cannot copy them
CHANGING = {"replacing"}  # its activation is another one in the next pass
OTHER_KERNEL = {"padded encoder"}  # where activations can be replaced, padding is computed, too
NAMES = [
    name
    for name, entry in ZOO.items()
    if entry.sites and not entry.refused and name not in NOT_COPIED | CHANGING | OTHER_KERNEL
]


def prepared(name: str) -> tuple[Made, nn.Module, Replacer]:
    """A copy of a network of the zoo, with slots."""
    made, other = ZOO[name].make(), ZOO[name].make()
    network = copied(made.network)
    state = copy.deepcopy(network.state_dict())
    with torch.no_grad():
        replacer = find_slots(network, lambda: made.run(network, *other.given))
    network.load_state_dict(state)  # a pass may change buffers
    return made, network, replacer


def outputs(made: Made, network: nn.Module) -> list[Tensor]:
    torch.manual_seed(1)
    with torch.no_grad():
        found = made.run(network, *made.given)
    return [leaf for leaf in tree_leaves(found) if isinstance(leaf, Tensor)]


@pytest.mark.filterwarnings("ignore::FutureWarning")  # torch.export copies itself by old names
@pytest.mark.parametrize("name", NAMES)
def test_the_same_activation_in_a_slot_changes_nothing(name: str) -> None:
    made, network, replacer = prepared(name)
    called = []

    def same(slot: Slot, x: Tensor, original: Any) -> Any:
        called.append(slot.site.name)
        return original(x)

    for slot in replacer.slots:
        slot.listener = same
    with eager():
        expected = outputs(ZOO[name].make(), ZOO[name].make().network)
    found = outputs(made, network)
    assert [slot.site.name for slot in replacer.slots] == ZOO[name].sites
    assert sorted(called) == sorted(ZOO[name].sites)
    if not any(tensor.is_meta for tensor in expected):
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", sorted(NOT_COPIED))
def test_a_network_that_cannot_be_copied_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be copied"):
        copied(ZOO[name].make().network)


class Half(nn.Module):
    """A map that can be written by hand."""

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * x + 1


def by_hand(name: str) -> Any:
    """The forward pass of some of the zoo, with `Half` in the place of every activation."""

    def half(x: Tensor) -> Tensor:
        return 0.5 * x + 1

    def functional(_: Any, x: Tensor) -> Tensor:
        x = half(x)
        x = half(x - 0.1)
        x = half(x - 0.1)
        x = half(half(half((x - 0.1) * 1.0))).softmax(-1)
        return half(half(half(x)))

    bodies = {
        "functional": functional,
        "reused": lambda net, x: (y := half(net.first(x))) + half(net.second(y)),
        "in place": lambda net, x: half(net[2](half(net[0](x)))),
        "looped": lambda net, x: half(net.layers[2](half(net.layers[1](half(net.layers[0](x)))))),
        "recursive": lambda _, x: half(half(half(x - 0.1 - 0.1))),
        "shared": lambda net, x: half(net.tied(half(net.one[0](half(net.one[0](x)))))),
        "gated": lambda net, x: half(x) * torch.sigmoid(net.gate) * torch.tanh(x.mean()),
        "derived": lambda _, x: half(x - 0.1) + 0.1,
        "attention": lambda net, x: half(net.attention(x, x, x)[0]),
    }
    return bodies[name]


@pytest.mark.parametrize(
    "name", [*"functional reused looped recursive shared gated derived attention".split(), "in place"]
)
def test_a_replaced_network_is_the_network_written_by_hand(name: str) -> None:
    made, network, replacer = prepared(name)
    for slot in replacer.slots:
        slot.replacement = Half()
    found = outputs(made, network)
    again = ZOO[name].make()
    with torch.no_grad():
        expected = by_hand(name)(again.network, *again.given)
    torch.testing.assert_close(found, [expected])


@pytest.mark.filterwarnings("ignore::FutureWarning")  # torch.export copies itself by old names
@pytest.mark.parametrize("name", [name for name in NAMES if len(ZOO[name].sites) > 1])
def test_slots_of_a_second_round_are_those_that_are_left(name: str) -> None:
    made, network, replacer = prepared(name)
    state = copy.deepcopy(network.state_dict())
    for slot in replacer.slots:
        slot.replacement = Half()
    expected = outputs(made, network)
    for slot in replacer.slots[1::2]:
        slot.replacement = None
    replacer.keep_replaced()
    network.load_state_dict(state)
    with torch.no_grad():
        second = find_slots(network, lambda: made.run(network, *ZOO[name].make().given))
    network.load_state_dict(state)
    assert [slot.site.name for slot in second.left] == ZOO[name].sites[1::2]
    for slot in second.left:
        slot.replacement = Half()
    torch.testing.assert_close(outputs(made, network), expected, rtol=0, atol=0, equal_nan=True)


def test_composite_activations_and_functions_of_the_user_are_replaced_as_wholes() -> None:
    network: Any = Net(
        lambda net, x: tanh_and_relu(net.act(net.linear(x)), slope=0.1),
        linear=nn.Linear(8, 8),
        act=Swish(),
    )
    x = torch.randn(6, 8)
    with torch.no_grad():
        replacer = find_slots(network, lambda: network(x), activations=[Swish, tanh_and_relu])
        assert [slot.site.name for slot in replacer.slots] == ["act", "/tanh_and_relu"]
        for slot in replacer.slots:
            slot.replacement = Half()
        torch.testing.assert_close(network(x), 0.25 * network.linear(x) + 1.5)


def test_a_copy_of_a_replaced_network_has_slots_of_its_own() -> None:
    made, network, replacer = prepared("functional")
    replacer.slots[0].replacement = Half()
    before = outputs(made, network)
    other = copy.deepcopy(network)
    replacer.slots[0].replacement = None
    torch.testing.assert_close(outputs(ZOO["functional"].make(), other), before)


def test_gradient_checkpointing_is_refused_where_calls_are_counted() -> None:
    made, network, replacer = prepared("checkpointed")
    replacer.slots[0].replacement = Half()
    with pytest.raises(InputError, match="in a forward pass of the whole network"):
        made.run(network, *made.given).sum().backward()


class Interrupting(nn.Module):
    """A ReLU called twice by its function, between them what the test puts there."""

    between: Any = None

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(x)
        if self.between is not None:
            self.between()
        return torch.relu(x - 1)


def test_after_an_interrupt_the_replacements_run_again() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    x = torch.randn(8, 4)
    network: Any = linearize(Interrupting(), x, replacement="identity")
    torch.testing.assert_close(network(x), x - 1)
    network.between = interrupt
    with pytest.raises(KeyboardInterrupt):
        network(x)
    network.between = None
    torch.testing.assert_close(network(x), x - 1)
    assert not torch._C._len_torch_function_stack()


def test_threads_have_passes_of_their_own() -> None:
    both = threading.Barrier(2, timeout=60)
    x = torch.randn(8, 4)
    network: Any = linearize(Interrupting(), x, replacement="identity")
    network.between = both.wait  # each thread is inside of a pass while the other one is
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(network, [x, x]):
            torch.testing.assert_close(found, x - 1)


def test_an_interrupted_network_can_be_saved_and_its_parts_are_not_run_with_old_counts() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    x = torch.randn(8, 4)
    block = Interrupting()
    network: Any = linearize(nn.Sequential(nn.Linear(4, 4), block), x, replacement="identity")
    network[1].between = interrupt
    with pytest.raises(KeyboardInterrupt):
        network(x)
    network[1].between = None
    with pytest.raises(InputError, match="in a forward pass of the whole network"):
        network[1](x)
    assert pickle.dumps(network)
    assert not torch._C._len_torch_function_stack()
