"""Soundings while a network learns: a probe for one's own loop, callbacks for Lightning and transformers.

The callbacks need these libraries and are in modules of their own, `fathometer.training.lightning` and
`fathometer.training.transformers`; both are called `FathometerCallback`.
"""

from fathometer.training.penalty import AffinityPenalty
from fathometer.training.probe import Probe
from fathometer.training.tensorboard import TensorBoardLog

__all__ = ["AffinityPenalty", "Probe", "TensorBoardLog"]
