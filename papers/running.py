"""The front door: one item at one scale, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from fathometer.errors import InputError
from fathometer.results.files import WriteError
from fathometer.results.locks import locked
from fathometer.results.provenance import describe_device, now, versions
from papers.claim import Answer
from papers.item import Item
from papers.scales import SCALES, Scale
from papers.verdict import Verdict, read_verdict
from papers.workshop import Source, Workshop


def verdict_file(item: Item, scale: Scale, out: Path) -> Path:
    """Where an item leaves its verdict; tables and figures are beside it."""
    return out / scale / item.name / "verdict.json"


def missing_sources(item: Item, scale: Scale, sources: Mapping[Source, Path]) -> list[Source]:
    """What the user has yet to name; a plan of networks names its own images."""
    if scale != "paper":
        return []
    there = {*sources, "imagenet"} if "plan" in sources else set(sources)
    return [name for name in item.sources if name not in there]


def reproduce(
    item: Item,
    scale: Scale = "small",
    *,
    out: str | Path = "reproduction",
    device: str = "cpu",
    sources: Mapping[Source, str | Path] | None = None,
) -> Verdict:
    """Run an item: tables, figures and `verdict.json` in `OUT/SCALE/ITEM`.

    What several items need (trained networks, soundings) is made once, in `OUT/SCALE/shared`. The item itself
    runs each time that it is asked to, and takes the place of an earlier result once it is complete.

    Args:
        item: what, as `ITEMS["leaky-figure-1a"]`.
        scale: how large: `smoke`, `small` or `paper`.
        out: the folder of all reproductions.
        device: as torch names it.
        sources: paths of data and weights that the user has: `cifar10`, `imagenet`, `plan`, `resnets`.

    Raises:
        InputError: the scale `paper` needs something that was not named.
    """
    if scale not in SCALES:
        raise InputError(f"scale: expected {', '.join(SCALES)}, got {scale!r}")
    given = {name: Path(path).expanduser() for name, path in (sources or {}).items()}
    if missing := missing_sources(item, scale, given):
        raise InputError(f"{item.name} at scale paper needs {' and '.join(f'--{name}' for name in missing)}")
    shared = Path(out) / scale / "shared"
    started = time.perf_counter()
    file = verdict_file(item, scale, Path(out))
    with _complete_folder(file.parent) as folder:
        shared.mkdir(exist_ok=True)
        workshop = Workshop(scale, device, folder, shared, given)
        answers = _all_answered(item, item.run(workshop))
        verdict = Verdict(
            item=item.name,
            title=item.title,
            scale=scale,
            claims=item.claims,
            answers=answers,
            notes=tuple(workshop.notes),
            command=_command(item, scale, device, given),
            device=_machine(device),
            date=now(),
            seconds=time.perf_counter() - started,
            versions=versions(),
            figures=sorted(path.name for path in folder.glob("*.png")),
        )
        verdict.save(folder / file.name)
    return verdict


def settle(item: Item, scale: Scale, out: Path) -> None:
    """Put in order what a process that was killed has left of an item, unless another is at work on it."""
    folder = verdict_file(item, scale, out).parent
    if any(_beside(folder, ending).exists() for ending in ("lock", "part", "old")):
        with suppress(InputError, OSError), locked(_beside(folder, "lock")) as mine:
            if mine:  # where nothing can be written, nothing is put in order
                _settle(folder)


def record_not_run(item: Item, scale: Scale, why: str, *, out: str | Path = "reproduction") -> Verdict:
    """Leave a verdict that says why there is no other; an earlier result stays."""
    verdict = Verdict(item.name, item.title, scale, item.claims, date=now(), why=why)
    file = verdict_file(item, scale, Path(out))
    if not file.exists() or read_verdict(file).why:
        file.parent.mkdir(parents=True, exist_ok=True)
        verdict.save(file)
    return verdict


@contextmanager
def _complete_folder(folder: Path) -> Iterator[Path]:
    """A folder to write to, which takes the place of `folder` at the end; nothing is left of a failure."""
    part = _beside(folder, "part")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(_beside(folder, "lock")) as mine:
            if not mine:
                raise InputError(f"{folder}: another process is at work on it; let it end")
            _settle(folder)
            try:
                part.mkdir()
                yield part
                _put_in_place(part, folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise WriteError(f"{folder}: cannot be written ({error.strerror or error})") from error


def _beside(folder: Path, ending: str) -> Path:
    return folder.with_name(f".{folder.name}.{ending}")


def _put_in_place(part: Path, folder: Path) -> None:
    """One of both results is there at any moment, under one name or another."""
    old = _beside(folder, "old")
    if folder.exists():
        folder.rename(old)
    try:
        part.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _settle(folder: Path) -> None:
    """Put in order what a process that was killed has left; the caller holds the lock."""
    part, old = _beside(folder, "part"), _beside(folder, "old")
    if old.exists() and not folder.exists():  # the new one was complete, and about to take its place
        (part if part.exists() else old).rename(folder)
    for left in (part, old):
        shutil.rmtree(left, ignore_errors=True)


def _all_answered(item: Item, answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """In the order of the claims; none left out, none invented."""
    if set(answers) != set(item.claims):
        raise InputError(
            f"{item.name}: expected an answer to each of {', '.join(item.claims)}, got {', '.join(answers)}"
        )
    return {name: answers[name] for name in item.claims}


def _command(item: Item, scale: Scale, device: str, sources: Mapping[Source, Path]) -> str:
    used = [name for name in (*item.sources, *item.optional) if name in sources] if scale == "paper" else []
    paths = [f"--{name} {'PLAN.toml' if name == 'plan' else 'FOLDER'}" for name in used]
    where = [f"--device {device}"] if device != "cpu" else []
    return " ".join(["python -m papers run", item.name, f"--scale {scale}", *where, *paths])


def _machine(device: str) -> str:
    if device.startswith("cuda"):
        return describe_device(torch.device(device))
    threads = torch.get_num_threads()
    return f"{os.cpu_count()} cores ({threads} thread{'s' if threads > 1 else ''})"
