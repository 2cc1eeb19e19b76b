"""The paper on Leaky ResNets, figure by figure and statement by statement."""

from papers.item import Item
from papers.leaky.figure_1a import FIGURE_1A
from papers.leaky.figure_1b import FIGURE_1B
from papers.leaky.figure_1c import FIGURE_1C
from papers.leaky.figure_2a import FIGURE_2A
from papers.leaky.figure_2b import FIGURE_2B
from papers.leaky.figure_2c import FIGURE_2C
from papers.leaky.figure_3 import FIGURE_3
from papers.leaky.footnote_1 import FOOTNOTE_1
from papers.leaky.proposition_1 import PROPOSITION_1
from papers.leaky.proposition_2 import PROPOSITION_2
from papers.leaky.proposition_3 import PROPOSITION_3
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
    INTEGRATION_RANGE,
    OUTPUT_SCALING,
    FOOTNOTE_1,
)
"""In the order of the paper; the symmetries of section 1.2 and the footnote last."""
