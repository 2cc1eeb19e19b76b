"""Rules that say what is wrong with a network, from its sounding, its weights and one forward pass."""
