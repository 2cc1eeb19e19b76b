"""Tables 1 and 2 of the paper on the affinity score, as printed: Pearson correlations over sites."""

from __future__ import annotations

from functools import cache
from io import StringIO
from typing import Any

import pandas as pd

METRICS = {
    "cka": "cka",
    "norm": "norm",
    "sparsity": "sparsity_change",
    "entropy": "entropy_change",
    "r2": "r2",
}
"""The columns of both tables, and what the same is called here."""
ROUNDING = 0.01
"""Half a digit in Table 2, which a mean and a std pass on whole, and half a digit in Table 1."""

_ONE = """\
family,cka_mean,cka_std,norm_mean,norm_std,sparsity_mean,sparsity_std,entropy_mean,entropy_std,r2_mean,r2_std
VGGs,0.0,0.05,-0.67,0.06,-0.18,0.03,-0.90,0.04,-0.21,0.06
ResNets,0.53,0.04,-0.41,0.19,-0.68,0.02,-0.38,0.12,-0.48,0.24
DenseNets,0.88,0.02,-0.76,0.02,-0.89,0.02,-0.66,0.03,0.85,0.04
MNASNets,0.67,0.11,-0.54,0.14,-0.63,0.07,-0.55,0.16,0.45,0.17
EfficientNets,0.42,0.10,-0.16,0.22,-0.17,0.23,-0.16,0.14,0.21,0.12
ViTs,-0.22,0.40,-0.67,0.20,-0.09,0.56,0.17,0.25,-0.10,0.34
Swins,-0.15,0.13,-0.53,0.10,-0.26,0.17,0.06,0.35,-0.13,0.13
Convnexts,0.69,0.08,0.21,0.15,0.23,0.16,0.02,0.09,0.79,0.05
Average,0.33,0.45,-0.44,0.34,-0.32,0.42,-0.31,0.39,0.14,0.49
"""
_TWO = """\
network,family,cka,norm,sparsity,entropy,r2
alexnet,,-0.75,-0.86,0.14,-0.80,-0.41
vgg11,VGGs,-0.07,-0.76,-0.15,-0.95,-0.27
vgg13,VGGs,0.08,-0.66,-0.23,-0.93,-0.26
vgg16,VGGs,0.01,-0.63,-0.19,-0.88,-0.17
vgg19,VGGs,-0.01,-0.62,-0.15,-0.86,-0.14
googlenet,,0.74,-0.60,-0.83,-0.49,0.73
inception_v3,,0.69,-0.66,-0.75,-0.45,0.35
resnet18,ResNets,0.59,-0.17,-0.67,-0.30,-0.44
resnet34,ResNets,0.48,-0.18,-0.65,-0.19,-0.08
resnet50,ResNets,0.56,-0.60,-0.71,-0.50,-0.78
resnet101,ResNets,0.51,-0.57,-0.70,-0.51,-0.64
resnet152,ResNets,0.52,-0.51,-0.68,-0.42,-0.48
densenet121,DenseNets,0.84,-0.75,-0.87,-0.62,0.82
densenet161,DenseNets,0.87,-0.74,-0.87,-0.67,0.81
densenet169,DenseNets,0.87,-0.74,-0.87,-0.67,0.81
densenet201,DenseNets,0.89,-0.75,-0.91,-0.67,0.90
efficientnet_b1,EfficientNets,0.35,-0.41,-0.39,0.01,0.03
efficientnet_b2,EfficientNets,0.49,-0.02,-0.44,-0.06,0.34
efficientnet_b3,EfficientNets,0.32,-0.12,-0.18,-0.13,0.18
efficientnet_b4,EfficientNets,0.30,-0.51,-0.29,-0.44,0.11
vit_b_32,ViTs,0.47,-0.31,-0.29,0.39,0.51
vit_l_32,ViTs,-0.14,-0.61,-0.47,-0.02,-0.06
vit_b_16,ViTs,-0.27,-0.71,0.04,0.39,-0.22
vit_l_16,ViTs,-0.39,-0.89,-0.66,-0.23,-0.24
vit_h_14,ViTs,-0.77,-0.83,0.92,0.31,-0.49
swin_t,Swins,-0.12,-0.39,-0.02,-0.42,-0.06
swin_s,Swins,-0.003,-0.61,-0.31,0.18,-0.03
swin_b,Swins,-0.32,-0.59,-0.43,0.42,-0.32
convnext_tiny,Convnexts,0.77,-0.01,-0.04,0.09,0.80
convnext_small,Convnexts,0.57,0.22,0.25,0.13,0.72
convnext_base,Convnexts,0.67,0.41,0.35,-0.03,0.82
convnext_large,Convnexts,0.75,0.23,0.35,-0.10,0.84
"""


@cache
def table_1() -> pd.DataFrame:
    """Return family × (metric, `mean` or `std`); the last row is the average over all networks.

    Example:
        >>> float(table_1().loc["VGGs", ("cka", "std")])
        0.05
    """
    table = pd.read_csv(StringIO(_ONE)).set_index("family")
    columns: Any = [tuple(column.split("_")) for column in table.columns]
    return table.set_axis(pd.MultiIndex.from_tuples(columns), axis=1)


@cache
def table_2() -> pd.DataFrame:
    """Return network × metric, by torchvision's names of the networks; without the average.

    Example:
        >>> table_2().shape
        (32, 5)
    """
    return pd.read_csv(StringIO(_TWO)).set_index("network").drop(columns="family")


def table_2_families() -> dict[str, str]:
    """Map networks to rows of Table 1, if they belong to one."""
    families = pd.read_csv(StringIO(_TWO)).set_index("network")["family"].dropna()
    return {str(network): str(family) for network, family in families.items()}
