"""The networks of the paper on the affinity score, each measured once for all items that are about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from fathometer import Sounding
from fathometer.compare import by_name
from fathometer.errors import InputError
from fathometer.progress import progress_bar
from fathometer.survey import (
    Event,
    Family,
    Plan,
    Store,
    paper_plan,
    parse_plan,
    read_plan,
    run_survey,
    tasks_of,
)
from papers.item import RunContext

DataName: TypeAlias = Literal["imagenet", "cifar10", "noise"]

SMALL = "36 networks with random weights on noise, 2 batches of 16; nothing is decided about trained ones"
_LIGHT = (
    "alexnet",
    "resnet18",
    "resnet34",
    "mnasnet0_5",
    "mnasnet0_75",
    "mnasnet1_0",
    "mnasnet1_3",
)  # for smoke
_NOISE_BATCHES = 20  # where the plan takes all images there are


def network_soundings(context: RunContext, data: DataName = "imagenet") -> Mapping[str, Sounding]:
    """Measure the networks, or load them from `shared/zoo`; by name.

    At scale `paper` these are the networks, weights and images of `--plan`, or else the paper's 36 with
    torchvision's default weights on `--imagenet`. Below, weights are random, and all data are noise, whatever
    is asked for.

    Args:
        context: whose scale, device and sources count.
        data: `imagenet`: the plan's own images; `cifar10`: `--cifar10`; `noise`: as many samples of it.

    Raises:
        InputError: if no network can be measured, because no weights can be had, for instance. Those of
            some are left out, with a note.
    """
    tasks = tasks_of(plan_of(context, data))
    folder = context.shared / "zoo"
    with progress_bar("measuring networks") as show:
        finished = 0
        complaints: list[str] = []

        def on_event(event: Event) -> None:
            nonlocal finished
            if event.state in ("failed", "failed before"):
                complaints.append(_complaint(event))
            finished += event.state in ("measured", "kept", "failed", "failed before")
            show(finished, len(tasks), event.task.member.model)

        run_survey(tasks, folder, retry_failed=True, on_event=on_event)
    store = Store(folder)
    found = [sounding for task in tasks if (sounding := store.sounding(task)) is not None]
    if not found:
        raise InputError(complaints[0])
    for complaint in complaints:
        context.note(f"Left out: {complaint}.")
    return by_name(found)


def plan_of(context: RunContext, data: DataName = "imagenet") -> Plan:
    """Make the plan of this scale."""
    if context.scale != "paper":
        return _untrained(context)
    named = context.sources.get("plan")
    plan = read_plan(named) if named else parse_plan(paper_plan(context.source("imagenet")))
    plan = _first_of_each(context, plan)
    families = []
    for family in plan.families:
        device = context.device if family.run.device == "auto" else family.run.device  # unless it is named
        families.append(replace(family, run=replace(family.run, device=device)))
    return replace(plan, families=tuple(families), data=_data(context, plan, data))


def _untrained(context: RunContext) -> Plan:
    """Make a plan of the paper's networks with random weights, on noise."""
    plan = parse_plan(paper_plan("random:2"))
    samples = context.pick(smoke=3, small=16, paper=16)
    settings = next(iter(plan.settings.values())).changed(samples=samples, batches=2)
    families = []
    for family in plan.families:
        members = []
        for member in family.members:
            name = member.model.rpartition(":")[2]
            if context.scale == "small" or name in _LIGHT:
                members.append(replace(member, weights="none", weights_source="none"))
        if members:
            run = replace(family.run, workers=0, device=context.device, batch_size=samples)
            families.append(Family(family.name, tuple(members), run))
    data = {"noise": f"random:{2 * samples}"}
    return replace(plan, families=tuple(families), data=data, settings={"": settings})


def _first_of_each(context: RunContext, plan: Plan) -> Plan:
    """Keep one sounding for each network: the first of several settings and seeds."""
    if len(plan.settings) > 1 or len(plan.seeds) > 1:
        context.note("The plan has several settings or seeds; the first of each was taken.")
    name, settings = next(iter(plan.settings.items()))
    return replace(plan, settings={name: settings}, seeds=plan.seeds[:1])


def _data(context: RunContext, plan: Plan, data: DataName) -> dict[str, str]:
    """Choose one of the plan's own data if it has any, else what the user named, or noise."""
    if data in plan.data:
        return {data: plan.data[data]}
    if data == "cifar10":
        return {data: str(_test_images(context.source("cifar10")))}
    noise = {name: source for name, source in plan.data.items() if source.partition(":")[0] == "random"}
    images = {name: source for name, source in plan.data.items() if name not in noise}
    if data == "noise":
        settings = next(iter(plan.settings.values()))
        count = settings.samples * (settings.batches or _NOISE_BATCHES)
        return dict([*noise.items()][:1]) or {data: f"random:{count}"}
    if len(images) > 1:
        context.note(f"The plan has several data sets; {next(iter(images))} was taken for ImageNet.")
    return dict([*(images or noise).items()][:1])


def _test_images(path: Path) -> Path:
    """Find the test set of CIFAR-10: its own file if the folder has one, else the folder."""
    file = path / "cifar10_test.npz"
    return file if file.is_file() else path


def _complaint(event: Event) -> str:
    reason = (event.message.splitlines() or ["it failed"])[0].rstrip(".")
    model = event.task.member.model
    whose = "" if reason.startswith(model) else f"{model}: "
    return (
        f"{whose}{reason}. --plan PLAN.toml names networks and weights that are at hand "
        "(fathometer survey init PLAN.toml writes the paper's)"
    )
