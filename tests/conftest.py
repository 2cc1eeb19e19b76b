"""The same examples in every run: a failure can be repeated, and no run is unlucky."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")
