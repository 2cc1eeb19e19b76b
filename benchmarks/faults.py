"""Plants faults in healthy networks, and counts how often `fathometer.check` names them; and false alarms.

    python -m benchmarks.faults --weights FOLDER… --imagenet FOLDER --cifar10 FOLDER --minilm FOLDER
        --smollm2 FILE --work FOLDER [--seconds S] [--only PATTERN] [--record]

Finished checks are kept in the folder `--work`: after an interruption the same command resumes. `--record`
writes benchmarks/records/faults-cpu.json, from which `python -m benchmarks.faults_page` writes
docs/check-results.md. WeightWatcher (PyPI, 0.7.7) looks at the weights of one seed of each fault.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import logging
import math
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout
from copy import deepcopy
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch
from torch import nn

import fathometer
from benchmarks.healthy import SAMPLES, Places, Subject, subjects
from benchmarks.planting import FAULTS, Fault, loss_of
from benchmarks.records import add_record_option, record_benchmark
from fathometer.checking.rules import RULES, check_evidence
from fathometer.errors import first_line
from fathometer.measuring.check import gather_evidence, usual_options
from fathometer.models import LoadedModel

PLANTED = {  # networks of five kinds, and the names of their kinds
    "small/CNN, BatchNorm": "CNN",
    "cifar10/resnet20": "residual",
    "small/MLP": "MLP",
    "small/MLP, Tanh": "MLP",
    "small/ViT": "ViT",
    "text/MiniLM": "language model",
    "text/SmolLM2": "language model",
    "small/CNN, SiLU and BatchNorm": "CNN",
    "cifar10/resnet44": "residual",
    "small/MLP, LayerNorm": "MLP",
    "small/ViT, 6 layers": "ViT",
    "small/CNN, GELU": "CNN",
    "cifar10/resnet32": "residual",
    "small/MLP, BatchNorm": "MLP",
    "small/ViT, 2 layers": "ViT",
}
NOT_LOOKED_AT = tuple(PLANTED)[-4:]
"""Networks in which faults were planted only after the last change of a rule."""
ONLY = {"small/MLP, Tanh": "saturation", "text/SmolLM2": "wrong tokenizer"}
"""Networks that are there for one fault."""
SEEDS = 3
_EXTREMES = {  # numbers that thresholds are compared with: column of the sites, and whether large is unusual
    "dead_y": True,
    "saturated": True,
    "duplicates": True,
    "participation_ratio_y": False,
    "carriers_y": True,
    "affinity": True,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("imagenet", "cifar10", "minilm", "smollm2", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--weights", type=Path, nargs="+", required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--only", default="*")
    add_record_option(parser)
    options = parser.parse_args()
    places = Places(
        tuple(options.weights),
        options.imagenet,
        options.cifar10,
        options.minilm,
        options.smollm2,
        options.work,
    )
    warnings.simplefilter("ignore")
    done = Done(options.work / "checks.jsonl")
    deadline = time.monotonic() + options.seconds
    for name, load in subjects(places).items():
        if fnmatch(name, options.only):
            run_subject(name, load, done, deadline)
    if options.record:
        record_benchmark("faults", {"rules": [rule.name for rule in RULES], "checks": done.rows})


def code() -> str:
    """Return a hash of the code that decides what is planted and found."""
    root = Path(__file__).parents[1]
    own = [root / "benchmarks" / f"{name}.py" for name in ("faults", "planting", "healthy")]
    rules = sorted((root / "src/fathometer/checking").glob("*.py"))
    rules += sorted((root / "src/fathometer/gauges").glob("*.py"))
    front = [root / f"src/fathometer/measuring/{name}.py" for name in ("check", "input_trials")]
    return hashlib.sha256(b"".join(path.read_bytes() for path in (*own, *rules, *front))).hexdigest()[:12]


CODE = code()


class Done:
    """Finished checks, one line each; those of other code do not count."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        rows = [row for line in lines if (row := json.loads(line)).get("code") == CODE]
        if len(rows) < len(lines):
            print(f"{len(lines) - len(rows)} checks of other code are left out, and made again", flush=True)
        names = ("network", "fault", "strength", "seed")
        by_key = {tuple(row.get(name) for name in names): row for row in rows}
        self.rows: list[dict[str, Any]] = list(by_key.values())  # two runs may have made the same check

    def has(self, **key: Any) -> bool:
        """Return whether a check is finished."""
        return any(all(row.get(name) == value for name, value in key.items()) for row in self.rows)

    def add(self, row: dict[str, Any]) -> None:
        """Keep a check."""
        row = {**row, "code": CODE}
        self.rows.append(row)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def run_subject(name: str, load: Any, done: Done, deadline: float) -> None:
    """Check a healthy network, and then with every fault in it."""
    cases = [(fault, s, seed) for fault in FAULTS for s in fault.strengths for seed in range(SEEDS)]
    cases = [case for case in cases if name in PLANTED and ONLY.get(name, case[0].name) == case[0].name]
    keys = [{"network": name, "fault": f.name, "strength": str(s), "seed": seed} for f, s, seed in cases]
    if done.has(network=name, fault="") and all(done.has(**key) for key in keys):
        return
    if time.monotonic() > deadline:
        return
    subject = load()
    if not done.has(network=name, fault=""):
        torch.manual_seed(0)
        row = {"network": name, "fault": "", "kind": subject.kind, **checked(subject)}
        row |= {"time": seconds_of_both(subject)} if subject.kind == "cifar10" else {}
        done.add(row | ({"weights": seen_in_weights(subject.module)} if name in PLANTED else {}))
        print(name, done.rows[-1]["seconds"], done.rows[-1]["findings"][:2], flush=True)
    for (fault, strength, seed), key in zip(cases, keys, strict=True):
        if done.has(**key) or time.monotonic() > deadline:
            continue
        done.add({**key, "kind": PLANTED[name], **planted(subject, fault, strength, seed)})


def planted(subject: Subject, fault: Fault, strength: Any, seed: int) -> dict[str, Any]:
    """Plant a fault in a copy of the network, and check that; `applies`: whether there is a place for it."""
    torch.manual_seed(seed)
    module = deepcopy(subject.module)
    model = replace(subject.model, module=module) if isinstance(subject.model, LoadedModel) else module
    copy = replace(subject, model=model)
    result = fault.plant(copy, strength, torch.Generator().manual_seed(seed))
    if result is None:
        return {"applies": False}
    changed, place = result
    found = checked(changed)
    rules = [rule for rule, *_ in found["findings"]]
    return {
        "applies": True,
        "place": place,
        "expected": list(fault.rules),
        "first": bool(rules) and rules[0] in fault.rules,
        "found": any(rule in fault.rules for rule in rules),
        **found,
        **({"weights": seen_in_weights(changed.module)} if seed == 0 else {}),
    }


def seen_in_weights(module: nn.Module) -> dict[str, Any]:
    """Return what WeightWatcher says: the mean of alpha over layers, and the layers that it warns about.

    It raises an error at weights that are NaN or inf: `alpha` is None then.
    """
    from weightwatcher import WeightWatcher  # pip install weightwatcher; for this benchmark alone

    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            layers = WeightWatcher(model=module, log_level=logging.ERROR).analyze()
    except Exception as error:  # it has no error class of its own
        return {"alpha": None, "warned": [], "error": first_line(error)}
    if "alpha" not in layers:  # no layer is large enough
        return {"alpha": None, "warned": []}
    alpha = float(layers["alpha"].mean())
    warned = layers.loc[layers["warning"].fillna("").astype(str) != "", "longname"]
    return {"alpha": alpha if math.isfinite(alpha) else None, "warned": sorted(map(str, warned))}


def checked(subject: Subject) -> dict[str, Any]:
    """Check a network; return the findings, the numbers that thresholds are compared with, loss and time."""
    started = time.perf_counter()
    options = usual_options(subject.module, {"samples": SAMPLES[subject.kind]})
    evidence, sounding = gather_evidence(subject.model, subject.data, options, name=subject.name)
    facts = fathometer.Provenance() if sounding is None else sounding.provenance
    found = check_evidence(evidence, facts)
    sites = evidence.sites
    numbers: dict[str, Any] = {"sites": 0 if sites is None else len(sites), "loss": loss_of(evidence.facts)}
    return {
        "findings": [[each.rule, each.severity, each.place, each.sentence] for each in found.findings],
        "skipped": sorted(found.skipped),
        "numbers": numbers | extremes(evidence),
        "seconds": round(time.perf_counter() - started, 2),
    }


def seconds_of_both(subject: Subject) -> dict[str, float]:
    """Return how long a check takes, and `measure` with its standard gauges, on 512 samples."""
    found = {}
    options = replace(usual_options(subject.module, {"samples": 512}), gauges="standard")
    for name in ("check", "measure"):
        started = time.perf_counter()
        if name == "check":
            fathometer.check(subject.model, subject.data, samples=512)
        else:
            fathometer.measure(subject.model, subject.data, options)
        found[name] = round(time.perf_counter() - started, 3)
    return found


def extremes(evidence: Any) -> dict[str, float]:
    """Return the most unusual value of everything that has a threshold, without gates."""
    from fathometer.checking.site_rules import signal_sites

    found: dict[str, float] = {}
    if evidence.sites is not None:
        rows = signal_sites(evidence)
        wide = rows[rows["d"] >= 16]
        for column, is_large in _EXTREMES.items():
            values = (wide if column.startswith("part") else rows)[column].dropna()
            if len(values):
                found[column] = float(values.max() if is_large else values.min())
        sizes = rows["scale_x"][rows["dead_x"] < 1]
        if len(sizes) and sizes.min() > 0:
            found |= {"largest_scale": sizes.max(), "smallest_scale": sizes.min()}
            found["span"] = sizes.max() / sizes.min()
    norms, modules = evidence.norms, evidence.modules
    if modules is not None and "mean_drift" in modules:
        folded = set(norms.loc[norms["is_default"].astype(bool), "module"])
        known = modules[~modules["module"].isin(folded)].dropna(subset=["mean_drift"])
        if len(known):
            found |= {name: float(known[name].max()) for name in ("mean_drift", "variance_drift")}
    if evidence.trials is not None and "loss" in evidence.trials:
        losses = evidence.trials["loss"]
        found["trial_gain"] = float(losses.iloc[0] - losses.iloc[1:].min())
    weights = evidence.weights.dropna(subset=["spectrum"])
    if len(weights):
        from fathometer.checking.network_rules import looks_random

        found["random_layers"] = float(looks_random(weights).mean())
    return {name: float(value) for name, value in found.items()}


if __name__ == "__main__":
    main()
