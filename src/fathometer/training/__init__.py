"""Soundings during training: a probe for your own loop, callbacks for Lightning and transformers.

The callbacks need these libraries and have modules of their own, `fathometer.training.lightning` and
`fathometer.training.transformers`; both are called `FathometerCallback`.
"""

from fathometer.training.logs import TensorBoardLog
from fathometer.training.penalty import AffinityPenalty
from fathometer.training.probe import Probe

__all__ = ["AffinityPenalty", "Probe", "TensorBoardLog"]
