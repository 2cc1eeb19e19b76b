"""Opens data by name or path, as batches that a network takes."""

from fathometer.data.opening import open_data
from fathometer.data.source import Batch, DataSource, Inputs

__all__ = ["Batch", "DataSource", "Inputs", "open_data"]
