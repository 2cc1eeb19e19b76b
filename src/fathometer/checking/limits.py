"""The thresholds of the rules, in one place.

They were set beyond the most unusual value of trained networks with published weights; networks that
`benchmarks/faults.py` trains test them. docs/check-results.md has both. Those of random weights were set
after faults had been missed, beyond the values of untrained networks of torchvision and timm.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What counts as unusual. Shares are between 0 and 1."""

    dead_layer: float = 0.95
    """Share of channels that never vary, from which a whole layer is dead."""
    dead_channels: float = 0.02
    """Share of channels that never vary, from which they are reported."""
    min_samples: int = 100
    """With fewer, a rare feature looks dead, and a share of the samples means nothing."""
    many_dead: float = 0.25
    """The same, from which it is a warning."""
    saturated: float = 0.5
    """Share of saturated channels of a bounded activation."""
    duplicates: float = 0.04
    """Share of channels that are copies of another."""
    linear: float = 0.999
    """Affinity score from which an activation does nothing."""
    rank: float = 1.2
    """Participation ratio, below which a representation has collapsed to a line."""
    min_width: int = 16
    """Narrower sites have no rank to lose."""
    carriers: float = 0.5
    """Share of the variance that 1 % of the samples carry."""
    massive_ratio: float = 1000.0
    """Largest |activation| by their median (Sun et al., 2024) ..."""
    massive_size: float = 100.0
    """... where it is also at least so large."""
    explodes: float = 1e4
    """Typical size of the inputs of an activation (the gauge `scale`)."""
    vanishes: float = 1e-4
    """The same, below which nothing is left of the signal."""
    span: float = 1000.0
    """Factor between the largest and the smallest typical size in a network."""
    initial_step: float = 3.0
    """Factor by which random weights may change the signal from one activation to the next."""
    initial_gain: float = 4.0
    """Median over layers of √fan-in times the standard deviation of random weights; He's: 1.4."""
    random_weights: float = 4.0
    """Standard deviations by which rows, columns and tails may differ from those of independent draws ..."""
    spectrum: tuple[float, float] = (0.85, 1.06)
    """... where their largest singular value is also between these shares of a random matrix's."""
    random_share: float = 0.1
    """Share of the layers that look random, from which the network is only partly loaded."""
    mean_drift: float = 1.0
    """Shift of the inputs of a BatchNorm, in its running deviations, as a median over channels."""
    variance_drift: float = 2.0
    """|log| of the ratio of their variance and the running variance."""
    trial_loss: float = 0.1
    """By how much another way to prepare the images must lower the loss, in nats ..."""
    trial_drift: float = 0.5
    """... or to which share it must lower the drift at the first BatchNorm."""
    above_chance: float = 0.05
    """(accuracy − chance) / (1 − chance), below which a classifier is at chance level."""
    perplexity: float = 1000.0
    """From which a language model has learnt nothing about the text."""
    half_precision: float = 65504.0
    """The largest number of float16."""


LIMITS = Limits()
