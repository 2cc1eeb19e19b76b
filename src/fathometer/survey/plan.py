"""A plan: models × weights × data × settings × seeds, in a TOML file that is checked before anything runs."""

from __future__ import annotations

import os
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from fathometer.data.noise import is_noise, noise_count
from fathometer.errors import InputError
from fathometer.survey.lines import Lines
from fathometer.survey.members import Member, find_members, find_weights
from fathometer.survey.section import Section
from fathometer.survey.settings import RunOptions, Settings, read_run_options, read_settings

_TOP = ("seeds", "weights", "models", "without", "data", "settings", "run", "families", "facts")
_FAMILY = ("models", "without", "weights")


@dataclass(frozen=True)
class Family:
    """Models under one name.

    Attributes:
        name: empty for models that belong to none.
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
        families: of models.
        data: name to path, or to `random:N`.
        settings: name to settings; the name is empty where there is one of them.
        seeds: of random weights, of the order of the data, of noise and random positions.
        facts: of models, such as `accuracy`, by name.
        missing: names of data that are not there; such a plan can be looked at, but not measured.
    """

    families: tuple[Family, ...]
    data: Mapping[str, str]
    settings: Mapping[str, Settings]
    seeds: tuple[int, ...] = (0,)
    facts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    def __len__(self) -> int:
        """How many soundings it asks for."""
        models = sum(len(family.members) for family in self.families)
        return models * len(self.data) * len(self.settings) * len(self.seeds)


def read_plan(path: str | Path, *, preview: bool = False) -> Plan:
    """The plan in a TOML file. Paths in it are relative to the file.

    With `preview`, data that are not there are told in a warning.

    Raises:
        InputError: with the line, for an unknown key, model, data set, gauge, or a value that does not fit.
    """
    path = Path(path).expanduser()
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); fathometer survey --paper FILE writes an example"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected a plan in TOML, got other bytes (at {error.start})") from error
    return parse_plan(text, path.parent, path.name, preview=preview)


def parse_plan(text: str, folder: str | Path = ".", name: str = "plan", *, preview: bool = False) -> Plan:
    """The plan in a TOML text, with paths relative to `folder`.

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
    except (tomllib.TOMLDecodeError, RecursionError) as error:  # the latter of lists in lists in lists
        raise InputError(f"{name}: not TOML: {error}") from error
    section = Section(values, name, Lines(text))
    section.only(_TOP)
    _check_complete(section)
    folder = Path(folder)
    run = _run(section)
    settings = _settings(section)  # quick to check, so before the models
    data, missing = _data(section, folder, preview=preview)
    seeds = _seeds(section)
    families = _families(section, folder, run)
    return Plan(families, data, settings, seeds, _facts(section, families), missing)


def _check_complete(section: Section) -> None:
    """All that is missing, at once."""
    absent = {
        "data": "" if section.section("data").values else '[data] with photos = "photos/" in it',
        "models": ""
        if "models" in section.values or section.section("families").values
        else 'models = ["torchvision:resnet*"] or [families.NAME] with it',
    }
    names = [name for name, wanted in absent.items() if wanted]
    if names:
        missing = " and ".join(f"no {name}" for name in names)
        wanted = ", and ".join(absent[name] for name in names)
        raise section.error(f"{missing}; expected {wanted}", names[0])


def _run(section: Section) -> RunOptions:
    table = section.section("run")
    table.only(option.name for option in fields(RunOptions))
    return read_run_options(table, RunOptions())


def _settings(section: Section) -> dict[str, Settings]:
    table = section.section("settings")
    named = [key for key, value in table.values.items() if isinstance(value, dict)]
    if not named:
        return {"": read_settings(table)}
    loose = [key for key in table.values if key not in named]
    if loose:
        raise table.error(
            f"{loose[0]}: stands beside [settings.{named[0]}]; write it into each of the named settings",
            loose[0],
        )
    return {key: read_settings(table.section(key)) for key in named}


def _data(section: Section, folder: Path, *, preview: bool) -> tuple[dict[str, str], tuple[str, ...]]:
    """By name, and the names of those that are not there."""
    table = section.section("data")
    found: dict[str, str] = {}
    missing: list[str] = []
    for key, value in table.values.items():
        if not isinstance(value, str) or not value:
            raise table.error(f"{key}: expected a path or random:1000, got {value!r}", key)
        if is_noise(value):
            try:
                noise_count(value)
            except InputError as error:
                raise table.error(f"{key}: {error}", key) from error
            found[key] = value
            continue
        place = folder / Path(value).expanduser()
        if not os.path.exists(place):  # which takes any name, also one that is too long
            hint = "; did you mean random?" if value.lower().startswith(("ran", "noise")) else ""
            absent = table.error(f"{key}: {value!r}: no such file or folder{hint or _nearby(place)}", key)
            if not preview:
                raise absent
            missing.append(key)
            warnings.warn(f"{absent}; all soundings on it count as to do", stacklevel=4)
        found[key] = str(place)
    return found, tuple(missing)


def _nearby(place: Path) -> str:
    """What the folder has instead."""
    from difflib import get_close_matches

    try:
        near = get_close_matches(place.name, [entry.name for entry in place.parent.iterdir()], n=1)
    except OSError:
        return "; paths are relative to the plan"
    return f"; did you mean {near[0]}?" if near else "; paths are relative to the plan"


def _seeds(section: Section) -> tuple[int, ...]:
    seeds: Any = section.values.get("seeds", [0])
    if not isinstance(seeds, list) or not seeds:
        raise section.error(
            f"seeds: expected a list of whole numbers from 0, [0] or [0, 1, 2], got {seeds!r}", "seeds"
        )
    for seed in seeds:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise section.error(f"seeds: expected whole numbers from 0, got {seed!r}", "seeds")
    return tuple(dict.fromkeys(seeds))


def _families(section: Section, folder: Path, run: RunOptions) -> tuple[Family, ...]:
    usual = section.words("weights", ("default",))
    tables = section.section("families")
    sections = [("", section)] if "models" in section.values else []
    sections += [(name, tables.section(name)) for name in tables.values]
    families: list[Family] = []
    owner: dict[Member, str] = {}
    for name, table in sections:
        if name:
            table.only((*_FAMILY, *(option.name for option in fields(RunOptions))))
        members = []
        for model in find_members(table, folder):
            for weights in find_weights(table, usual, model, folder):
                member = Member(model.label, weights.label, model.load_as, weights.load_as, weights.is_file)
                if member in owner and owner[member] != name:
                    raise table.error(
                        f"{member.model} is in {owner[member] or 'models'} already, a model has one family; "
                        f'without = ["{member.model}"] leaves it out',
                        "models",
                    )
                owner[member] = name
                members.append(member)
        families.append(
            Family(name, tuple(dict.fromkeys(members)), read_run_options(table, run) if name else run)
        )
    return tuple(families)


def _facts(section: Section, families: tuple[Family, ...]) -> dict[str, dict[str, float]]:
    table = section.section("facts")
    known = dict.fromkeys(member.model for family in families for member in family.members)
    table.only(known)
    found: dict[str, dict[str, float]] = {}
    for model in table.values:
        entry = table.section(model)
        found[model] = {key: float(entry.number(key, None, -1e300)) for key in entry.values}
    return found
