"""From a name or a path to batches that a network takes."""

from fathometer.data.opening import open_data
from fathometer.data.source import Batch, DataSource

__all__ = ["Batch", "DataSource", "open_data"]
