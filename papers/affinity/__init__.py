"""The paper on the affinity score, figure by figure and table by table."""

from papers.affinity.figure_2 import FIGURE_2A, FIGURE_2B, FIGURE_2C
from papers.affinity.figure_3 import FIGURE_3
from papers.affinity.figure_4 import FIGURE_4
from papers.affinity.figure_5a import FIGURE_5A
from papers.affinity.figure_5b import FIGURE_5B
from papers.affinity.figure_5c import FIGURE_5C
from papers.affinity.figure_5d import FIGURE_5D
from papers.affinity.figure_6 import FIGURE_6
from papers.affinity.figure_7 import FIGURE_7
from papers.affinity.figure_8 import FIGURE_8
from papers.affinity.figure_9 import FIGURE_9
from papers.affinity.figure_10 import FIGURE_10
from papers.affinity.figure_11 import FIGURE_11
from papers.affinity.figure_12 import FIGURE_12
from papers.affinity.figure_13 import FIGURE_13
from papers.affinity.figure_14 import FIGURE_14
from papers.affinity.figure_15 import FIGURE_15
from papers.affinity.figure_16 import FIGURE_16
from papers.affinity.table_1 import TABLE_1
from papers.affinity.table_2 import TABLE_2
from papers.affinity.table_3 import TABLE_3
from papers.affinity.theorems import THEOREMS
from papers.item import Item

ITEMS: tuple[Item, ...] = (
    THEOREMS,
    FIGURE_2A,
    FIGURE_2B,
    FIGURE_2C,
    FIGURE_3,
    FIGURE_4,
    FIGURE_5A,
    FIGURE_5B,
    FIGURE_5C,
    FIGURE_5D,
    FIGURE_6,
    FIGURE_7,
    FIGURE_8,
    FIGURE_9,
    FIGURE_10,
    FIGURE_11,
    FIGURE_12,
    FIGURE_13,
    FIGURE_14,
    FIGURE_15,
    FIGURE_16,
    TABLE_1,
    TABLE_2,
    TABLE_3,
)
"""In the order of the paper, tables last."""
