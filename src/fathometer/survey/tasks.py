"""A plan becomes tasks: each one sounding, with an address that says everything its values depend on."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import torch

from fathometer.capture import Reduction
from fathometer.measure import measure
from fathometer.models.torchvision_facts import depth_of, torchvision_facts
from fathometer.sounding import Sounding
from fathometer.sounding_file import VERSION
from fathometer.subject import Subject, load_subject
from fathometer.survey.identity import data_identity, weights_identity
from fathometer.survey.members import Member
from fathometer.survey.plan import Plan
from fathometer.survey.settings import RunOptions, Settings, gauges_of
from fathometer.user_code import import_by_name

_FORMAT = 1  # of the address; another one measures all anew


@dataclass(frozen=True)
class Task:
    """One sounding to take.

    Attributes:
        member: the model and its weights.
        family: its name, which may be empty.
        data_name: what the plan calls the data.
        data: their path, or `random:N`.
        settings_name: what the plan calls the settings.
        settings: what decides the values.
        seed: of random weights, of the order of the data, of noise and random positions.
        run: what decides where and how fast.
        key: everything that decides the values.
        facts: about the model, such as its accuracy.
    """

    member: Member
    family: str
    data_name: str
    data: str
    settings_name: str
    settings: Settings
    seed: int
    run: RunOptions
    key: dict[str, Any] = field(hash=False)
    facts: dict[str, float] = field(default_factory=dict, hash=False)

    @property
    def address(self) -> str:
        """A hash of everything that decides the values."""
        return hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def stem(self) -> str:
        """The name of the file without its ending: model and data for people, the address for the store."""
        words = f"{self.member.model.rpartition(':')[2]}-{self.data_name}"
        return f"{re.sub('[^A-Za-z0-9_-]+', '-', words)[-80:].strip('-') or 'sounding'}-{self.address}"

    @property
    def title(self) -> str:
        """For people."""
        parts = [self.member.model, self.member.weights, self.data_name, self.settings_name]
        return " · ".join([part for part in parts if part] + ([f"seed {self.seed}"] if self.seed else []))


def tasks_of(plan: Plan) -> list[Task]:
    """Every sounding that a plan asks for, once; family by family, all data of a model together."""
    found: dict[str, Task] = {}
    data = {name: data_identity(source) for name, source in plan.data.items()}
    for family in plan.families:
        for member in family.members:
            facts = torchvision_facts(member.model, member.weights) | dict(plan.facts.get(member.model, {}))
            weights = weights_identity(member)
            for name, settings_name, seed in product(plan.data, plan.settings, plan.seeds):
                settings = plan.settings[settings_name]
                key = {
                    "format": [_FORMAT, VERSION],
                    "model": member.model,
                    "weights": weights,
                    "data": data[name],
                    "settings": settings.as_dict(),
                    "seed": seed,
                }
                task = Task(
                    member=member,
                    family=family.name,
                    data_name=name,
                    data=plan.data[name],
                    settings_name=settings_name,
                    settings=settings,
                    seed=seed,
                    run=family.run,
                    key=key,
                    facts=facts,
                )
                found.setdefault(task.address, task)
    return list(found.values())


def measure_task(
    task: Task,
    *,
    first_batch: int = 0,
    batches: int | None = None,
    assume_readable: bool = False,
    journal: Path | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Sounding:
    """Take the sounding, or a range of its batches; with a journal, go on where it was interrupted.

    With `assume_readable`, samples before the range are not read: it is for the caller to see that no range
    skips any.
    """
    settings = task.settings
    with _threads(task.run.threads), torch.random.fork_rng(devices=[]):
        subject = subject_of(task)
        subject.source.all_readable |= assume_readable
        sounding = measure(
            subject.model,
            subject.source,
            samples=settings.samples,
            batches=settings.batches if batches is None else batches,
            first_batch=first_batch,
            gauges=gauges_of(settings.gauges),
            sites=list(settings.sites) or None,
            activations=[import_by_name(name, "activations") for name in settings.activations],
            reduction=Reduction(
                settings.reduction, settings.pool_first, settings.channel_axis, seed=task.seed
            ),
            leftover="keep" if settings.leftover == "keep" else "drop",
            batch_size=task.run.batch_size,
            device=subject.device,
            seed=task.seed,
            name=task.member.model,
            journal=journal,
            progress=progress or False,
        )
    return _labelled(sounding, task, depth_of(subject.model.module))


def subject_of(task: Task) -> Subject:
    """The network and its data."""
    return load_subject(
        task.member.model_source,
        task.data,
        weights=task.member.weights_source,
        device=task.run.device,
        dtype=task.settings.dtype,
        seed=task.seed,
        batch_size=task.run.batch_size,
        shuffle=task.settings.shuffle,
        workers=task.run.workers,
        strict=task.settings.strict,
        length=task.settings.length,
    )


def _labelled(sounding: Sounding, task: Task, depth: int) -> Sounding:
    """With what the plan says of it."""
    facts = sounding.provenance
    labels = {"address": task.address, "settings": task.settings_name, "data": task.data_name}
    model = {**facts.model, "family": task.family, "facts": {"depth": depth, **task.facts}}
    return replace(
        sounding, provenance=replace(facts, model=model, settings={**facts.settings, "survey": labels})
    )


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """So many threads of torch, and as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
