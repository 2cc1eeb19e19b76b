"""Trained networks: those with published weights, those that are trained here, and their soundings."""
