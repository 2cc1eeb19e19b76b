"""The paper on Leaky ResNets, figure by figure and statement by statement."""

from papers.item import Item
from papers.leaky.figure_1 import FIGURE_1A, FIGURE_1B, FIGURE_1C
from papers.leaky.figure_2 import FIGURE_2A, FIGURE_2B, FIGURE_2C
from papers.leaky.figure_3 import FIGURE_3
from papers.leaky.identity import PROPOSITION_1, PROPOSITION_2, PROPOSITION_3
from papers.leaky.lagrangian import FOOTNOTE_1, LAGRANGIAN
from papers.leaky.proposition_5 import PROPOSITION_5
from papers.leaky.proposition_9 import PROPOSITION_9
from papers.leaky.symmetries import INTEGRATION_RANGE, OUTPUT_SCALING
from papers.leaky.theorem_4 import THEOREM_4

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
    LAGRANGIAN,
    INTEGRATION_RANGE,
    OUTPUT_SCALING,
    FOOTNOTE_1,
)
"""In the order of the paper; what has no experiment in it comes last."""
