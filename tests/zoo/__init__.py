"""Awkward networks, each with the sites that it must show."""

from tests.zoo.calls import CALLS, Conditional, Functional, Inner, Swish, tanh_and_relu
from tests.zoo.entry import Awkward, Net
from tests.zoo.graphs import GRAPHS
from tests.zoo.layers import LAYERS
from tests.zoo.modules import MODULES
from tests.zoo.numbers import NUMBERS
from tests.zoo.ways import WAYS

ZOO: dict[str, Awkward] = CALLS | MODULES | LAYERS | NUMBERS | WAYS | GRAPHS

__all__ = ["ZOO", "Awkward", "Conditional", "Functional", "Inner", "Net", "Swish", "tanh_and_relu"]
