"""Measuring: a network and data in, a `Sounding` out. `measure.py` is the front door."""
