"""Soundings while a network learns: a probe for one's own loop, callbacks for Lightning and transformers.

The callbacks need these libraries and are in modules of their own, `fathometer.integrations.lightning` and
`fathometer.integrations.transformers`; both are called `FathometerCallback`.
"""

from fathometer.integrations.probe import Probe
from fathometer.integrations.tensorboard import TensorBoardLog

__all__ = ["Probe", "TensorBoardLog"]
