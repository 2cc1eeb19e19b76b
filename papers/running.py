"""Run one item at one scale, in a folder of its own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.records import origin
from fathometer.errors import InputError
from papers.item import Item, RunContext, Scale, Source
from papers.verdict import Verdict, answer, rounded

DRAWS = 2000
"""Simulated experiments for the size and the power of a test."""


def verdict_file(item: Item, scale: Scale, out: Path) -> Path:
    """Return the file of an item's verdict; tables and figures are beside it."""
    return out / scale / item.name / "verdict.json"


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
        scale: one of `item.scales`.
        out: folder of all results.
        device: torch device.
        sources: paths of your data and weights: `cifar10`, `resnets`.

    Raises:
        InputError: the item does not run at this scale, or needs a source that was not named.
    """
    if scale not in item.scales:
        raise InputError(f"{item.name}: expected a scale of {', '.join(item.scales)}, got {scale!r}")
    given = {name: Path(path).expanduser() for name, path in (sources or {}).items()}
    if missing := [name for name in item.sources if scale == "paper" and name not in given]:
        raise InputError(f"{item.name} at scale paper needs {' and '.join(f'--{name}' for name in missing)}")
    shared = Path(out) / scale / "shared"
    started = time.perf_counter()
    file = verdict_file(item, scale, Path(out))
    with _replaced_folder(file.parent) as folder:
        shared.mkdir(parents=True, exist_ok=True)
        context = RunContext(scale, device, folder, shared, given)
        evidence = item.run(context)
        draws = 20 if scale == "smoke" else DRAWS
        about = origin(device)
        verdict = Verdict(
            item=item.name,
            fingerprint=item.fingerprint,
            scale=scale,
            answers={name: answer(claim, evidence, draws) for name, claim in item.claims.items()},
            facts=rounded(context.facts),
            figures=sorted(path.name for path in folder.glob("*.png")),
            command=_command(item, scale, device),
            commit=about["commit"],
            machine=about["machine"],
            date=about["date"],
            seconds=round(time.perf_counter() - started, 1),
            versions=about["versions"],
        )
        verdict.save(folder / file.name)
    return verdict


@contextmanager
def _replaced_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder that replaces `folder` at the end; after an error the earlier one stays."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror or error})") from error
    try:
        yield part
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _command(item: Item, scale: Scale, device: str) -> str:
    """Return the command that repeats a run, without the user's paths."""
    paths = [f"--{name} FOLDER" for name in item.sources] if scale == "paper" else []
    where = [f"--device {device}"] if device != "cpu" else []
    return " ".join(["python -m papers run", item.name, f"--scale {scale}", *where, *paths])
