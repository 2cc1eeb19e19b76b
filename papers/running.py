"""Run one item at one scale, in a folder of its own."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import torch

from benchmarks.records import commit
from fathometer.errors import FathometerError, InputError
from fathometer.results import locked
from papers.item import SCALES, Answer, Answers, Item, RunContext, Scale, Source
from papers.verdict import Verdict, read_verdict


def verdict_file(item: Item, scale: Scale, out: Path) -> Path:
    """Return the file of an item's verdict; tables and figures are beside it."""
    return out / scale / item.name / "verdict.json"


def missing_sources(item: Item, scale: Scale, sources: Mapping[Source, Path]) -> list[Source]:
    """List the sources that the user must still name; a plan of networks names its own images."""
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
    """Run an item and write tables, figures and `verdict.json` to `OUT/SCALE/ITEM`.

    What several items need (trained networks, soundings) is made once, in `OUT/SCALE/shared`. The item itself
    runs at every call; its result replaces an earlier one when it is complete.

    Args:
        item: the item, for example `ITEMS["leaky-figure-1a"]`.
        scale: `smoke`, `small` or `paper`.
        out: folder of all results.
        device: torch device.
        sources: paths of your data and weights: `cifar10`, `imagenet`, `plan`, `resnets`.

    Raises:
        InputError: the scale `paper` needs a source that was not named.
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
        context = RunContext(scale, device, folder, shared, given)
        answers = _all_answered(item, item.run(context))
        verdict = Verdict(
            item=item.name,
            title=item.title,
            scale=scale,
            claims=item.claims,
            answers=answers,
            notes=tuple(context.notes),
            command=_command(item, scale, device, given),
            device=_machine(device),
            commit=commit(),
            date=_now(),
            seconds=time.perf_counter() - started,
            versions=_versions(),
            figures=sorted(path.name for path in folder.glob("*.png")),
        )
        verdict.save(folder / file.name)
    return verdict


def recover(item: Item, scale: Scale, out: Path) -> None:
    """Complete or remove what a killed process left of an item, unless another process works on it."""
    folder = verdict_file(item, scale, out).parent
    if any(_beside(folder, ending).exists() for ending in ("lock", "part", "old")):
        with suppress(FathometerError, OSError), locked(_beside(folder, "lock")) as mine:
            if mine:  # if nothing can be written, nothing can be recovered
                _recover(folder)


def record_not_run(item: Item, scale: Scale, why: str, *, out: str | Path = "reproduction") -> Verdict:
    """Write a verdict that says why the item could not run; an earlier result stays."""
    verdict = Verdict(item.name, item.title, scale, item.claims, commit=commit(), date=_now(), why=why)
    file = verdict_file(item, scale, Path(out))
    if not file.exists() or read_verdict(file).why:
        file.parent.mkdir(parents=True, exist_ok=True)
        verdict.save(file)
    return verdict


@contextmanager
def _complete_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder to write to, which replaces `folder` at the end; after an error it is removed."""
    part = _beside(folder, "part")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(_beside(folder, "lock")) as mine:
            if not mine:
                raise InputError(f"{folder}: another process works on it; wait until it ends")
            _recover(folder)
            try:
                part.mkdir()
                yield part
                _put_in_place(part, folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror or error})") from error


def _beside(folder: Path, ending: str) -> Path:
    return folder.with_name(f".{folder.name}.{ending}")


def _put_in_place(part: Path, folder: Path) -> None:
    """Replace the result; at any moment one of both is complete, under one name or another."""
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


def _recover(folder: Path) -> None:
    """Complete or remove what a killed process left; the caller holds the lock."""
    part, old = _beside(folder, "part"), _beside(folder, "old")
    if old.exists() and not folder.exists():  # the new one was complete, and about to replace it
        (part if part.exists() else old).rename(folder)
    for left in (part, old):
        shutil.rmtree(left, ignore_errors=True)


def _all_answered(item: Item, answers: Answers) -> dict[str, Answer]:
    """Return the answers in the order of the claims; refuse missing and unknown ones."""
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
        return f"{device} ({torch.cuda.get_device_name(device)})"
    threads = torch.get_num_threads()
    return f"{os.cpu_count()} cores ({threads} thread{'s' if threads > 1 else ''})"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("fathometer", "torch", "numpy", "scipy", "torchvision", "timm", "transformers"):
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
