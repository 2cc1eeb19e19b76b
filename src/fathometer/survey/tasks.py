"""The tasks of a plan: each is one sounding, with an address that identifies all its values depend on."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import torch

from fathometer.data import DataSource, open_data
from fathometer.data.opening import require_data
from fathometer.errors import check_device
from fathometer.measuring.measure import measure
from fathometer.models import LoadedModel, load_model
from fathometer.models.from_torchvision import depth_of, torchvision_facts
from fathometer.results.sounding import Sounding
from fathometer.survey.identity import code_identity, data_identity, model_identity
from fathometer.survey.members import Member
from fathometer.survey.plan import Plan
from fathometer.survey.settings import RunOptions, Settings
from fathometer.threads import torch_threads

VALUES_VERSION = 1
"""Raise it with every change that gives other values for the same input: of a gauge, a reduction, the order
of samples, what counts as a site. It is part of every address, so everything is measured again. The version
of the file format is not part of it."""

_KEPT_BYTES = 2**29  # of data in memory, for the next settings


@dataclass(frozen=True)
class Task:
    """One sounding to take.

    Attributes:
        member: the model and its weights.
        family: name of its family, which may be empty.
        data_name: name of the data in the plan.
        data: their path, or `random:N`.
        settings_name: name of the settings in the plan.
        settings: what decides the values.
        seed: seed for random weights, the data order, noise and random positions.
        run: what decides where and how fast.
        key: everything that decides the values.
        facts: numbers about the model, such as its accuracy.
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

    @cached_property
    def address(self) -> str:
        """Hash of everything that decides the values; names of data and settings, and paths, do not."""
        return hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:24]

    @cached_property
    def stem(self) -> str:
        """Name of the file without its ending: model and data for people, the address for the store."""
        words = f"{self.member.model.rpartition(':')[2]}-{self.data_name}"
        return f"{re.sub('[^A-Za-z0-9_-]+', '-', words)[-80:].strip('-') or 'sounding'}-{self.address}"

    @property
    def network(self) -> tuple[Member, int, str | None, RunOptions]:
        """What must be loaded; tasks with the same network share it."""
        return self.member, self.seed, self.settings.dtype, self.run

    @property
    def opened(self) -> tuple[object, ...]:
        """What must be opened; tasks with the same network and data share them."""
        return *self.network, self.data, self.settings.loading

    @property
    def title(self) -> str:
        """Name for people."""
        parts = [self.member.model, self.member.weights, self.data_name, self.settings_name]
        return " · ".join([part for part in parts if part] + ([f"seed {self.seed}"] if self.seed else []))


def tasks_of(plan: Plan) -> list[Task]:
    """Return every sounding of a plan once, family by family, with all data of a network together.

    A warning names what the plan has twice under two names.
    """
    found: dict[str, Task] = {}
    twice: list[tuple[Task, Task]] = []
    code = {
        name: code_identity((*settings.gauges, *settings.activations, settings.call or ""))
        for name, settings in plan.settings.items()
    }
    data = {
        name: {"missing": source} if name in plan.missing else data_identity(source)
        for name, source in plan.data.items()
    }
    for family in plan.families:
        for member in family.members:
            facts = torchvision_facts(member.model, member.weights) | dict(plan.facts.get(member.model, {}))
            model = model_identity(member)
            for seed, name, settings_name in product(plan.seeds, plan.data, plan.settings):
                settings = plan.settings[settings_name]
                key = {
                    "values": _values_version(member, settings),
                    "model": model,
                    "data": data[name],
                    "settings": settings.as_dict(),
                    "code": code[settings_name],
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
                known = found.setdefault(task.address, task)
                if known is not task:
                    twice.append((task, known))
    if twice:
        task, known = twice[0]
        more = f" (and {len(twice) - 1} more such pairs)" if len(twice) > 1 else ""
        warnings.warn(
            f"{task.title} is the same as {known.title} under another name{more}: "
            "it is measured once, under the latter",
            stacklevel=2,
        )
    return list(found.values())


def _values_version(member: Member, settings: Settings) -> int:
    """Return the version of the values: those that version 0.1 computed wrongly are measured again.

    These are random positions in texts (padding) and half precision (constant outputs).
    """
    texts = member.model.startswith("hf:") and settings.reduction == "position"
    return VALUES_VERSION + (texts or settings.dtype in ("bfloat16", "float16"))


def by_network(tasks: Iterable[Task]) -> list[list[Task]]:
    """Return the tasks of each network, which is loaded once for all of them."""
    found: dict[object, list[Task]] = {}
    for task in tasks:
        found.setdefault(task.network, []).append(task)
    return list(found.values())


class Networks:
    """Keeps the network that was loaded last, on its device, and the data that were opened last.

    Args:
        tasks: what will be measured; data for several settings are kept in memory.
    """

    def __init__(self, tasks: Iterable[Task] = ()) -> None:
        self._uses = Counter(task.opened for task in tasks)
        self._model: LoadedModel | None = None
        self._source: DataSource | None = None
        self._network = self._opened = self._identity = None  # type: object
        self._changes = False  # whether forward passes change the network

    def load(self, task: Task, device: str) -> LoadedModel:
        """Return the network of a task, with torch's generator as it is after loading."""
        if self._network != task.network:
            self._identity, self._changes = None, False
        if self._network != task.network or self._changes or self._model is None:
            self._model = self._source = None  # two networks may not fit into memory
            model = load_model(task.member.model_source, task.member.weights_source, seed=task.seed)
            if task.settings.dtype:
                model.cast(task.settings.dtype)
            model.module.to(device)
            self._model, self._network, self._random_state = model, task.network, torch.get_rng_state()
        if device != "cpu":
            torch.manual_seed(task.seed)
        torch.set_rng_state(self._random_state)
        return self._model

    def open(self, task: Task, model: LoadedModel) -> DataSource:
        """Return the data of a task, for its network."""
        if self._source is None or self._opened != task.opened:
            self._source = None
            loading, run = task.settings.loading, task.run
            self._source = open_data(
                task.data,
                model.inputs,
                batch_size=run.batch_size,
                shuffle=loading.shuffle,
                seed=task.seed,
                workers=run.workers,
                strict=loading.strict,
                length=loading.length,
                keep_bytes=_KEPT_BYTES if self._uses[task.opened] > 1 else 0,
            )
            self._opened = task.opened
        return self._source

    def forget(self) -> None:
        """Drop the network: a pass that failed may have changed it."""
        self._model = None

    def is_unchanged(self, sounding: Sounding) -> bool:
        """Say whether a sounding began with the network as it was loaded; if not, it is not used twice."""
        found = [sounding.provenance.model.get(name) for name in ("checksum", "structure")]
        self._identity = self._identity or found
        if found == self._identity:
            return True
        self._changes = True
        name = sounding.provenance.model["name"]
        warnings.warn(
            f"{name}: a forward pass changes this network, so it is loaded for every sounding", stacklevel=3
        )
        return False


def measure_task(
    task: Task,
    networks: Networks | None = None,
    *,
    journal: Path | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Sounding:
    """Take the sounding of a task; with a journal, resume where it was interrupted."""
    run, networks = task.run, networks or Networks()
    device = check_device(run.device)
    require_data(task.data)
    with torch_threads(run.threads) if run.threads else nullcontext(), torch.random.fork_rng(devices=[]):
        model = networks.load(task, device)
        source = networks.open(task, model)
        if task.settings.is_one_batch(len(source)):
            journal = None  # it would be complete at the same time as the sounding
        try:
            sounding = measure(
                model,
                source,
                task.settings.options(task.seed),
                batch_size=run.batch_size,
                device=device,
                name=task.member.model,
                journal=journal,
                progress=progress or False,
            )
        except Exception:
            networks.forget()
            raise
    if not networks.is_unchanged(sounding):  # an earlier pass changed the network: load it again
        if journal is not None:
            journal.unlink(missing_ok=True)
        return measure_task(task, networks, journal=journal, progress=progress)
    return labelled(sounding, task, depth_of(model.module))


def labelled(sounding: Sounding, task: Task, depth: int | None = None) -> Sounding:
    """Return a sounding with the names and facts of the plan, which do not decide any value.

    Args:
        sounding: as it was measured, or kept with other names and facts.
        task: what the plan says.
        depth: depth of the network, if it is known.
    """
    facts = sounding.provenance
    model = {**facts.model, "name": task.member.model, "family": task.family}
    if task.member.weights_is_file:
        model["weights"] = Path(task.member.weights_source).name
    elif task.member.model_source.startswith("onnx:"):
        model["weights"] = Path(task.member.model_source).name
    if depth is not None:
        model["depth"] = depth
    model["facts"] = ({"depth": model["depth"]} if "depth" in model else {}) | task.facts
    labels = {"address": task.address, "settings": task.settings_name, "data": task.data_name}
    return replace(
        sounding, provenance=replace(facts, model=model, settings={**facts.settings, "survey": labels})
    )
