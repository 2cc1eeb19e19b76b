"""Loads networks by name, with a description of their inputs."""

from fathometer.models.from_torchvision import torchvision_facts
from fathometer.models.loading import LoadedModel, list_models, load_model
from fathometer.models.sources import ensure_torchvision_operators
from fathometer.models.weights import load_weights

__all__ = [
    "LoadedModel",
    "ensure_torchvision_operators",
    "list_models",
    "load_model",
    "load_weights",
    "torchvision_facts",
]
