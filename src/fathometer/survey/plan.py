"""A plan: models × weights × data × settings × seeds, in a TOML file that is checked before anything runs."""

from __future__ import annotations

import os
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import msgspec

from fathometer.data.hugging_face import is_on_hub, split_source
from fathometer.data.opening import is_noise, noise_count
from fathometer.errors import InputError, did_you_mean
from fathometer.survey.members import Member, find_members
from fathometer.survey.settings import RunOptions, Settings, Whole, converted

_RUN_KEYS = [each.name for each in fields(RunOptions)]

Words = str | list[str]


@dataclass(frozen=True)
class Family:
    """Models under one name.

    Attributes:
        name: empty for models without a family.
        members: the models with their weights.
        run: how they are run.
    """

    name: str
    members: tuple[Member, ...]
    run: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True)
class Plan:
    """What a survey measures.

    Attributes:
        families: the models.
        data: name to path, to `hf:NAME`, or to `random:N`.
        settings: name to settings; the name is empty if there is only one.
        seeds: seeds for random weights, the data order, noise and random positions.
        facts: facts about models, such as `accuracy`, by name.
        missing: names of data that do not exist; such a plan can be previewed, but not measured.
    """

    families: tuple[Family, ...]
    data: Mapping[str, str]
    settings: Mapping[str, Settings]
    seeds: tuple[int, ...] = (0,)
    facts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of soundings."""
        models = sum(len(family.members) for family in self.families)
        return models * len(self.data) * len(self.settings) * len(self.seeds)


class _File(msgspec.Struct):
    """The tables of a plan."""

    models: Words = []
    without: Words = []
    weights: Words = "default"
    seeds: list[Whole] = msgspec.field(default_factory=lambda: [0])
    data: dict[str, str] = {}
    settings: dict[str, Any] = {}
    run: dict[str, Any] = {}
    families: dict[str, dict[str, Any]] = {}
    facts: dict[str, dict[str, float]] = {}


class _Models(msgspec.Struct):
    """The keys of a family, apart from those of `[run]`."""

    models: Words = []
    without: Words = []
    weights: Words | None = None


def read_plan(path: str | Path, *, preview: bool = False) -> Plan:
    """Read a plan from a TOML file. Paths in it are relative to the file.

    With `preview`, missing data give a warning instead of an error.

    Raises:
        InputError: for an unknown key, model, data set or gauge, or a value of the wrong type.
    """
    path = Path(path).expanduser()
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected a plan in TOML, got other bytes (at {error.start})") from error
    return parse_plan(text, path.parent, path.name, preview=preview)


def parse_plan(text: str, folder: str | Path = ".", name: str = "plan", *, preview: bool = False) -> Plan:
    """Read a plan from a TOML text, with paths relative to `folder`.

    Example:
        >>> plan = parse_plan('''
        ... models = ["torchvision:resnet1?", "torchvision:alexnet"]
        ... weights = "none"
        ... [data]
        ... noise = "random:640"
        ... ''')
        >>> len(plan), [member.model for member in plan.families[0].members]
        (2, ['torchvision:resnet18', 'torchvision:alexnet'])
    """
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:  # RecursionError: lists in lists in lists
        raise InputError(f"{name}: not TOML: {error}") from error
    file = converted(values, _File, f"{name}: ")
    if not file.data:
        raise InputError(f'{name}: expected data, [data] with photos = "photos/"; got none')
    if not file.models and not file.families:
        raise InputError(f'{name}: expected models = ["torchvision:resnet*"] or [families.NAME]; got none')
    if not file.seeds:
        raise InputError(f"{name}: seeds: expected at least one, got none")
    folder = Path(folder).absolute()
    run = _run_options(file.run, RunOptions(), f"{name}, [run]")
    settings = _settings(file.settings, name)  # quick to check, so before the models
    data, missing = _data(file.data, folder, name, preview=preview)
    families = _families(file, folder, run, name)
    models = [member.model for family in families for member in family.members]
    for model in file.facts:
        if model not in models:
            hint = did_you_mean(model, models) or "it is not one of the models"
            raise InputError(f"{name}, [facts]: unknown model {model!r}; {hint}")
    return Plan(families, data, settings, tuple(dict.fromkeys(file.seeds)), file.facts, missing)


def _run_options(table: Mapping[str, Any], defaults: RunOptions, where: str) -> RunOptions:
    return converted({**asdict(defaults), **table}, RunOptions, f"{where}: ")


def _settings(table: Mapping[str, Any], name: str) -> dict[str, Settings]:
    named = {key: value for key, value in table.items() if isinstance(value, dict)}
    loose = [key for key in table if key not in named]
    if named and loose:
        raise InputError(
            f"{name}, [settings]: {loose[0]} stands beside [settings.{next(iter(named))}]; write it into "
            "each of the named settings"
        )
    found = {}
    for key, values in (named or {"": dict(table)}).items():
        try:
            found[key] = Settings(**values)
        except InputError as error:
            raise InputError(f"{name}, [settings{key and f'.{key}'}]: {error}") from error
    return found


def _data(
    table: Mapping[str, str], folder: Path, name: str, *, preview: bool
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the data by name, and the names of those that are missing."""
    found: dict[str, str] = {}
    missing: list[str] = []
    for key, value in table.items():
        if is_noise(value):
            try:
                noise_count(value)
            except InputError as error:
                raise InputError(f"{name}, [data]: {key}: {error}") from error
            found[key] = value
            continue
        if is_on_hub(value, folder):
            found[key] = value
            continue
        prefix, path, split = split_source(value)
        target = folder / Path(path).expanduser()
        found[key] = f"{prefix}{target}{split}"
        if value and os.path.exists(target):  # which takes any name, also one that is too long
            continue
        message = f"{name}, [data]: {key}: {value!r}: no such file or folder; {_nearby(target, value)}"
        if not preview:
            raise InputError(message)
        missing.append(key)
        warnings.warn(f"{message}; all soundings on it count as to do", stacklevel=4)
    return found, tuple(missing)


def _nearby(target: Path, value: str) -> str:
    """Return what was probably meant."""
    try:
        entries = [entry.name for entry in target.parent.iterdir()]
    except OSError:
        entries = []
    return (
        did_you_mean(value.partition(":")[0], ["random"])
        or did_you_mean(target.name, entries, maximum=1)
        or "paths are relative to the plan"
    )


def _families(file: _File, folder: Path, run: RunOptions, name: str) -> tuple[Family, ...]:
    tables = [("", _Models(file.models, file.without), run, name)] if file.models else []
    for family, values in file.families.items():
        where = f"{name}, [families.{family}]"
        own = {key: value for key, value in values.items() if key in _RUN_KEYS}
        rest = {key: value for key, value in values.items() if key not in own}
        models = converted(rest, _Models, f"{where}: ", also=_RUN_KEYS)
        tables.append((family, models, _run_options(own, run, where), where))
    families: list[Family] = []
    owner: dict[Member, str] = {}
    for family, table, options, where in tables:
        weights = file.weights if table.weights is None else table.weights
        try:
            members = find_members(_words(table.models), _words(table.without), _words(weights), folder)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        for member in members:
            if owner.setdefault(member, family) != family:
                raise InputError(
                    f"{where}: {member.model} is in {owner[member] or 'models'} already, and a model has one "
                    f'family; without = ["{member.model}"] leaves it out'
                )
        families.append(Family(family, tuple(members), options))
    return tuple(families)


def _words(value: Words) -> list[str]:
    return [value] if isinstance(value, str) else list(dict.fromkeys(value))
