"""Writes docs/check-results.md from the record of `benchmarks.faults`.

python -m benchmarks.faults_page
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from benchmarks.faults import NOT_LOOKED_AT
from benchmarks.records import FOLDER, ROOT, Row, footer, markdown_table
from fathometer.checking.limits import LIMITS, Limits

PAGE = ROOT / "docs" / "check-results.md"
RECORD = FOLDER / "faults-cpu.json"
GOAL = 0.95
EXPECTED = 43  # healthy networks of `benchmarks.healthy`
KINDS = ("CNN", "residual", "MLP", "ViT", "language model")

_COMPARED = {  # number in the record → threshold, and whether larger is unusual
    "span": ("span", True),
    "largest_scale": ("explodes", True),
    "smallest_scale": ("vanishes", False),
    "participation_ratio_y": ("rank", False),
    "duplicates": ("duplicates", True),
    "saturated": ("saturated", True),
    "dead_y": ("dead_layer", True),
    "affinity": ("linear", True),
    "mean_drift": ("mean_drift", True),
    "variance_drift": ("variance_drift", True),
    "trial_gain": ("trial_loss", True),
    "random_layers": ("random_share", True),
}

Check = Mapping[str, Any]


def halves(healthy: Sequence[Check]) -> tuple[list[Check], list[Check]]:
    """Split the healthy networks: published ones are for calibration, those that are trained here test."""
    ordered = sorted(healthy, key=lambda check: check["network"])
    is_test = [check["network"].startswith("small/") for check in ordered]
    return (
        [check for check, test in zip(ordered, is_test, strict=True) if not test],
        [check for check, test in zip(ordered, is_test, strict=True) if test],
    )


def new_rules(check: Check, healthy: Mapping[str, Check]) -> list[str]:
    """Return the rules of the findings that the network does not have without the fault, in their order."""
    before = {tuple(finding) for finding in healthy[check["network"]]["findings"]}
    return [finding[0] for finding in check["findings"] if tuple(finding) not in before]


def fault_rows(planted: Sequence[Check], healthy: Mapping[str, Check]) -> list[Row]:
    """Return a row for each kind of fault."""
    rows: list[Row] = []
    for fault in dict.fromkeys(check["fault"] for check in planted):
        checks = [check for check in planted if check["fault"] == fault]
        row: Row = {"fault": fault, "rules": ", ".join(checks[0]["expected"][:2]), "checks": len(checks)}
        for kind in KINDS:
            some = [check for check in checks if check["kind"] == kind]
            row[kind] = percentage(some, lambda check: first_new(check, healthy)) if some else "–"
        row["first"] = percentage(checks, lambda check: check["first"])
        row["first, new"] = percentage(checks, lambda check: first_new(check, healthy))
        row["found"] = percentage(checks, lambda check: found_new(check, healthy))
        row["loss shows it"] = percentage(
            [c for c in checks if has_loss(c, healthy)], lambda c: worse(c, healthy)
        )
        row["WeightWatcher shows it"] = percentage(
            [c for c in checks if "weights" in c], lambda c: shown_by_weights(c, healthy)
        )
        rows.append(row)
    return rows


def shown_by_weights(check: Check, healthy: Mapping[str, Check]) -> bool:
    """Return whether WeightWatcher fails, warns about another layer, or alpha differs by over a tenth."""
    before, after = healthy[check["network"]]["weights"], check["weights"]
    if after["alpha"] is None or before["alpha"] is None:
        return after["alpha"] is not before["alpha"]
    is_new = bool(set(after["warned"]) - set(before["warned"]))
    return is_new or abs(after["alpha"] - before["alpha"]) > 0.1 * before["alpha"]


def first_new(check: Check, healthy: Mapping[str, Check]) -> bool:
    """Return whether the first finding that is new is of a rule that names the fault."""
    rules = new_rules(check, healthy)
    return bool(rules) and rules[0] in check["expected"]


def found_new(check: Check, healthy: Mapping[str, Check]) -> bool:
    """Return whether any new finding is of a rule that names the fault."""
    return any(rule in check["expected"] for rule in new_rules(check, healthy))


def has_loss(check: Check, healthy: Mapping[str, Check]) -> bool:
    """Return whether the network has a loss to look at."""
    return healthy[check["network"]]["numbers"]["loss"] is not None


def worse(check: Check, healthy: Mapping[str, Check]) -> bool:
    """Return whether the loss is more than a tenth above that of the healthy network, or no number."""
    before, after = healthy[check["network"]]["numbers"]["loss"], check["numbers"]["loss"]
    return after is None or not after <= 1.1 * before + 0.05


def percentage(checks: Sequence[Check], test: Any) -> str:
    """Return the share of checks that pass a test."""
    return f"{100 * sum(map(test, checks)) / len(checks):.0f} %" if checks else "–"


def alarm_rows(groups: Mapping[str, Sequence[Check]]) -> list[Row]:
    """Return a row for each group of healthy networks: how many have findings of each severity."""
    rows: list[Row] = []
    for name, checks in groups.items():
        sites = sum(check["numbers"]["sites"] for check in checks)
        row: Row = {"networks": name, "count": len(checks), "sites": sites}
        for severity in ("error", "warning"):
            found = [[f for f in check["findings"] if f[1] == severity] for check in checks]
            row[f"networks with {severity}s"] = sum(map(bool, found))
            places = sum(len(findings) for findings in found)
            row[f"{severity}s by site"] = f"{100 * places / max(sites, 1):.2f} %"
        rows.append(row)
    return rows


def limit_rows(calibration: Sequence[Check], test: Sequence[Check]) -> list[Row]:
    """Return a row for each threshold: the most extreme values of the healthy networks."""
    words = {field.name: field for field in fields(Limits)}
    rows: list[Row] = []
    for number, (name, is_large) in _COMPARED.items():
        pick = max if is_large else min
        row: Row = {"number": number, "threshold": getattr(LIMITS, words[name].name)}
        for half, checks in (("calibration", calibration), ("test", test)):
            values = [check["numbers"][number] for check in checks if number in check["numbers"]]
            row[f"most unusual, {half}"] = float(f"{pick(values):.3g}") if values else "–"
        rows.append(row)
    return rows


def _shares(checks: Sequence[Check], healthy: Mapping[str, Check]) -> str:
    """Return the shares of checks whose fault is named first, first among new findings, and at all."""
    tests = (lambda c: c["first"], lambda c: first_new(c, healthy), lambda c: found_new(c, healthy))
    return ", ".join(percentage(checks, test) for test in tests)


_HEAD = """\
# How well the check works

Written by `python -m benchmarks.faults_page` from the record of `benchmarks/faults.py`.
[Checking a network](check.md) explains the rules.

## Planted faults

{checks} checks of networks with one fault: {kinds} kinds of faults, in {networks} networks of
{network_kinds} kinds, up to 3 strengths and 3 seeds. Not every fault has a place in every network.

- *First*: the first finding is of a rule that names the fault.
- *First, new*: the same, without findings that the network has anyway, also in the columns by kind.
- *Found*: any new finding names it.
- *Loss shows it*: what somebody sees who knows the loss of the healthy network and looks at nothing else:
  it is more than a tenth larger.

The goal, first and new in 95 % of the checks, is **{verdict}**. Shares of first; first, new; found:

- all checks: {every};
- without *normalisation left out*: {others}. Most misses are of this kind: activations do not show it
  unless a BatchNorm remains behind it, whose statistics no longer fit;
- {names}: {unseen} ({unseen_checks} checks). Rules, thresholds and which rules name a fault were changed
  after looking at faults in the other networks, and not after looking at faults in these; they were among
  the healthy networks from the start.

*Initialisation too small* was also planted in residual networks and in one with LayerNorm, and not found
there. It was dropped for them after that: the residual stream carries the signal past small weights, and
LayerNorm scales it again. *Saturation* was also planted before the GELUs of MiniLM, by mistake.
"""


def page(record: Mapping[str, Any]) -> str:
    """Return the text of the page."""
    checks = record["found"]["checks"]
    healthy = [check for check in checks if not check["fault"]]
    by_name = {check["network"]: check for check in healthy}
    planted = [check for check in checks if check["fault"] and check.get("applies")]
    calibration, test = halves(healthy)
    unseen = [check for check in planted if check["network"] in NOT_LOOKED_AT]
    others = [check for check in planted if check["fault"] != "normalisation left out"]
    alarms = [check for check in healthy if any(f[1] == "error" for f in check["findings"])]
    shares = [_shares(each, by_name) for each in (planted, unseen, others)]
    reached = sum(first_new(check, by_name) for check in planted) >= GOAL * len(planted)
    parts = [
        _HEAD.format(
            checks=len(planted),
            kinds=len({check["fault"] for check in planted}),
            networks=len({check["network"] for check in planted}),
            network_kinds=len({check["kind"] for check in planted}),
            verdict="met" if reached else "missed",
            every=shares[0],
            names="; ".join(NOT_LOOKED_AT),
            unseen_checks=len(unseen),
            unseen=shares[1],
            others=shares[2],
        ),
        markdown_table(fault_rows(planted, by_name)),
        "Missed, where no new finding names the fault:\n",
        *missed_lines(planted, by_name),
        "\n*WeightWatcher shows it*: WeightWatcher 0.7.7, which looks at weights alone, warns about a layer "
        "that is new, gives a mean alpha that differs by more than a tenth from the healthy network's, "
        "or fails (one seed of each fault). It does not claim to find such faults, and needs no data.\n",
        "## False alarms\n",
        "Healthy networks: published weights, and small networks trained for this benchmark. Thresholds were "
        "set while looking at the published ones (calibration), on up to 512 samples; those trained here "
        "test them. The goal is an error in at most one network in twenty, and at most 2 % of the sites.\n",
        f"The record has {len(healthy)} of the {EXPECTED} healthy networks of the benchmark.\n",
        markdown_table(alarm_rows({"calibration": calibration, "test": test, "all": healthy})),
        "Networks with an error: "
        + ("; ".join(f"{c['network']} ({c['findings'][0][3]})" for c in alarms) or "none")
        + ".\n",
        "## Time\n",
        time_line(healthy),
        "## Thresholds\n",
        markdown_table(limit_rows(calibration, test)),
        "`dead_y` and `random_layers` are shares, `affinity` is that of the activation with the least "
        "effect; gates of squeeze-and-excitation do not count.\n",
        f"<small>{footer(record)}.</small>\n",
    ]
    return "\n".join(parts)


def time_line(healthy: Sequence[Check]) -> str:
    """Compare the time of a check with that of `measure`."""
    times = [check["time"] for check in healthy if "time" in check]
    ratios = sorted(each["check"] / each["measure"] for each in times)
    if not ratios:
        return "Not measured.\n"
    middle = ratios[len(ratios) // 2]
    return (
        f"A check takes {middle:.2f} times as long as `measure` with its standard gauges on the same samples "
        f"(median of {len(ratios)} networks; from {ratios[0]:.2f} to {ratios[-1]:.2f}). The goal is 1: "
        f"{'met' if middle <= 1 else 'missed'}.\n"
    )


def missed_lines(planted: Sequence[Check], healthy: Mapping[str, Check]) -> list[str]:
    """List the networks in which a kind of fault was missed, with how often."""
    lines = []
    for fault in dict.fromkeys(check["fault"] for check in planted):
        counts = []
        for network in dict.fromkeys(check["network"] for check in planted):
            checks = [c for c in planted if (c["fault"], c["network"]) == (fault, network)]
            missed = sum(not found_new(check, healthy) for check in checks)
            if missed:
                counts.append(f"{network} ({missed} of {len(checks)})")
        if counts:
            lines.append(f"- {fault}: {'; '.join(counts)}")
    return lines or ["- none"]


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(RECORD.read_text("utf-8"))), "utf-8")
