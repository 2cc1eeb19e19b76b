"""Soundings during training: a probe for your own loop, callbacks for Lightning and transformers, a film.

The callbacks need these libraries and have modules of their own, `fathometer.training.lightning` and
`fathometer.training.transformers`; both are called `FathometerCallback`.
"""

from fathometer.training.film import film
from fathometer.training.logs import TensorBoardLog, WandbLog
from fathometer.training.penalty import AffinityPenalty
from fathometer.training.probe import Probe

__all__ = ["AffinityPenalty", "Probe", "TensorBoardLog", "WandbLog", "film"]
