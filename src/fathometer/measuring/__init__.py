"""Measure networks; `measure.py` is the front door."""
