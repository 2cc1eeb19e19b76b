"""The residual path of any network: where its representation has few dimensions, and how fast it moves."""

from fathometer.residual.path import Bottleneck, bottleneck, residual_path

__all__ = ["Bottleneck", "bottleneck", "residual_path"]
