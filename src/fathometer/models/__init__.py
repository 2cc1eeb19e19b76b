"""From a name to a network and what it takes in."""

from fathometer.models.loading import LoadedModel, list_models, load_model
from fathometer.models.weights import load_weights

__all__ = ["LoadedModel", "list_models", "load_model", "load_weights"]
