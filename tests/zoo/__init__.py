"""Awkward networks, each with the sites that it must show."""

from tests.zoo.calls import CALLS, Composite, Conditional, Functional, Inner, Reused, Swish, tanh_and_relu
from tests.zoo.entry import Awkward, Net
from tests.zoo.graphs import GRAPHS
from tests.zoo.layers import LAYERS
from tests.zoo.maps import MAPS
from tests.zoo.modules import MODULES
from tests.zoo.numbers import NUMBERS
from tests.zoo.ways import WAYS

GROUPS = {
    "calls in unusual ways": CALLS,
    "modules in unusual ways": MODULES,
    "what torch puts around layers": LAYERS,
    "other numbers and tensors": NUMBERS,
    "run in unusual ways, or changing": WAYS,
    "torch.vmap and torch.func": MAPS,
    "traced, exported, compiled, scripted": GRAPHS,
}
ZOO: dict[str, Awkward] = {name: entry for group in GROUPS.values() for name, entry in group.items()}

__all__ = [
    "GROUPS",
    "ZOO",
    "Awkward",
    "Composite",
    "Conditional",
    "Functional",
    "Inner",
    "Net",
    "Reused",
    "Swish",
    "tanh_and_relu",
]
