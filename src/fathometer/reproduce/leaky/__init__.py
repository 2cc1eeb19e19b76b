"""The paper on Leaky ResNets, figure by figure and statement by statement."""

from fathometer.reproduce.item import Item
from fathometer.reproduce.leaky.figure_1a import FIGURE_1A
from fathometer.reproduce.leaky.figure_1b import FIGURE_1B
from fathometer.reproduce.leaky.figure_1c import FIGURE_1C
from fathometer.reproduce.leaky.figure_2a import FIGURE_2A
from fathometer.reproduce.leaky.figure_2b import FIGURE_2B
from fathometer.reproduce.leaky.figure_2c import FIGURE_2C
from fathometer.reproduce.leaky.figure_3 import FIGURE_3
from fathometer.reproduce.leaky.footnote_1 import FOOTNOTE_1
from fathometer.reproduce.leaky.proposition_1 import PROPOSITION_1
from fathometer.reproduce.leaky.proposition_2 import PROPOSITION_2
from fathometer.reproduce.leaky.proposition_3 import PROPOSITION_3
from fathometer.reproduce.leaky.proposition_5 import PROPOSITION_5
from fathometer.reproduce.leaky.proposition_9 import PROPOSITION_9
from fathometer.reproduce.leaky.symmetries import INTEGRATION_RANGE, OUTPUT_SCALING
from fathometer.reproduce.leaky.theorem_4 import THEOREM_4

ITEMS: tuple[Item, ...] = (
    FIGURE_1A,
    FIGURE_1B,
    FIGURE_1C,
    FIGURE_2A,
    FIGURE_2B,
    FIGURE_2C,
    FIGURE_3,
    PROPOSITION_1,
    PROPOSITION_2,
    PROPOSITION_3,
    PROPOSITION_5,
    PROPOSITION_9,
    THEOREM_4,
    INTEGRATION_RANGE,
    OUTPUT_SCALING,
    FOOTNOTE_1,
)
"""In the order of the paper; the symmetries of section 1.2 and the footnote last."""
