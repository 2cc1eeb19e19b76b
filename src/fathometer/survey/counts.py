"""Whether data can fill a batch, where that is known before a network is loaded."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from fathometer.data.cifar import is_cifar
from fathometer.data.files import list_files
from fathometer.data.image_folder import IMAGE_SUFFIXES
from fathometer.data.noise import is_noise, noise_count
from fathometer.errors import InputError
from fathometer.survey.tasks import Task


def check_counts(tasks: Iterable[Task]) -> None:
    """Refuse data that are too few for a batch of their settings."""
    count_of = lru_cache(maxsize=None)(known_count)
    for data, source, name, settings in dict.fromkeys(
        (task.data_name, task.data, task.settings_name, task.settings) for task in tasks
    ):
        if settings.reduction == "tokens":  # of which an input has more than one
            continue
        count = count_of(source)
        least = 2 if settings.leftover == "keep" else settings.samples
        if count is not None and count < least:
            table = f"[settings.{name}]" if name else "[settings]"
            keep = f', or {table} leftover = "keep"' if 1 < count < settings.samples else ""
            raise InputError(
                f"[data] {data}: expected at least {least} samples to fill a batch "
                f"({table} samples = {settings.samples}), got {count}; give more data, or fewer samples{keep}"
            )


def known_count(source: str) -> int | None:
    """How many samples there are at most; none where only a network can tell.

    Example:
        >>> known_count("random:32"), known_count("no such folder")
        (32, None)
    """
    if is_noise(source):
        return noise_count(source)
    path = Path(source)
    try:
        if not path.is_dir() or is_cifar(path):
            return None
        return sum(file.name.lower().endswith(IMAGE_SUFFIXES) for file in list_files(path))
    except (OSError, InputError):
        return None
