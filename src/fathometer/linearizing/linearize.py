"""The front door: a network and data in, a network with straight lines instead of some activations out."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import nn

from fathometer.capture import SiteFilter, unwrapped
from fathometer.errors import ForwardError, InputError, check_choice, join_names
from fathometer.linearizing.budget import parse_budget
from fathometer.linearizing.choose import Choice
from fathometer.linearizing.criteria import CriterionLike, check_criterion, smallest_first
from fathometer.linearizing.journal import Journal
from fathometer.linearizing.maps import MAPS, Kind
from fathometer.linearizing.outputs import forward
from fathometer.linearizing.search import copied, find_slots
from fathometer.linearizing.slots import Replacer, Slot
from fathometer.linearizing.trial import Trial, calibration_batches
from fathometer.measuring.batches import first_sample, input_count, slice_inputs, with_labels
from fathometer.measuring.identity import code_hash, describe_data, describe_network, hash_contents
from fathometer.measuring.loop import Progress, evaluating, placed
from fathometer.measuring.options import listed, readable_name
from fathometer.measuring.texts import tokenised
from fathometer.models import LoadedModel
from fathometer.progress import shown
from fathometer.results.linearized import KL, SQUARED_ERROR, Linearized
from fathometer.results.provenance import Provenance, describe_device, now, versions

_CONTAINERS = nn.Sequential, nn.ModuleList, nn.ModuleDict

_SEARCH_INPUTS = 2  # inputs are enough to find the calls


def linearize(
    model: nn.Module | LoadedModel,
    data: Any,
    *,
    sites: SiteFilter | Iterable[SiteFilter] | None = None,
    budget: int | str | None = None,
    criterion: CriterionLike = "greedy-kl",
    replacement: Kind = "channel",
    activations: Sequence[type[nn.Module] | Callable[..., Any]] = (),
    test: Any = None,
    samples: int = 1024,
    tokenizer: Any = None,
    length: int | None = None,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    seed: int = 0,
    name: str | None = None,
    journal: str | Path | None = None,
    progress: bool | Progress = False,
) -> nn.Module:
    """Replace activations of a network by straight lines, those first that cost least.

    The result is a copy of the network; the original stays as it is. Lines are fitted by least squares to
    what each call gets and gives on the data, over all positions. After each step those from the
    new one on are fitted again, in order of depth, to predict what the call gave in the original network from
    what it gets now, and the running means of BatchNorm are estimated again. Either is kept if the outputs
    come closer to the original ones.

    Args:
        model: any `nn.Module`, or the result of `fathometer.models.load_model`. It may be the result of an
            earlier call, for example after `recover`: the calls that are left are replaced, and the outputs
            are compared with those that it gives now.
        data: what lines are fitted on, and costs are measured on, as for `fathometer.measure`. Use training
            data, and keep the test data for the end.
        sites: which calls may be replaced, as for `fathometer.measure`: all activations if left out. If all
            are names of calls, they stand for these alone: `act` is not `act#2`.
            `module:*.mlp` stands for whole modules, with `replacement="affine"`.
        budget: a number of sites (`12`, `"25%"`), of activation elements for each input that may stay
            (`"50k elements"`; sites are then ranked by the change of the outputs divided by their elements),
            or of percentage points of accuracy that may be lost (`"0.5 points"`; without labels, of agreement
            with the original). If left out, all `sites` are replaced at once.
        criterion: how sites are chosen within a budget (`fathometer.linearizing.criteria.Criterion`):
            `greedy-kl`, `kl`, `quick-kl`, `taylor`, `random`, `depth`, a gauge, or a function of a `Site`.
        replacement: what takes the place of a call: a line for each `channel`, one `slope` for all, the
            `identity`, or an `affine` map of all channels (ridge regression), the only one that may change
            the width.
        activations: classes and functions of your own that are activations.
        test: data that the curve of the result is measured on; `data` if left out.
        samples: how many inputs of `data` to use, and of `test`.
        tokenizer: turns texts into token ids, as for `fathometer.measure`.
        length: number of tokens in a block of text.
        batch_size: the largest number of inputs in a forward pass.
        device: where to run; where the network is if left out.
        seed: seed for the order of the data, and for criteria that are random.
        name: name of the network in the result.
        journal: a file that keeps the finished steps of a budget; if it exists, the work resumes from there.
        progress: True for a bar, or a function of (sites done, total or None).

    Returns:
        A network of the same class. Modules whose calls were replaced have a child `linear_maps`. It can be
        trained, saved as a state dict and exported. Its attribute `linearized` is the result (`Linearized`):
        the curve and the table of sites.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
        >>> straight = linearize(net, torch.randn(200, 4), sites="1")
        >>> list(straight.linearized.replaced)
        ['1']
    """
    started = time.perf_counter()
    check_choice("replacement", replacement, Kind)
    check_criterion(criterion)
    original, facts = describe_network(model, name)
    data, test = (
        None if each is None else tokenised(model, with_labels(each), tokenizer, length, batch_size, seed)
        for each in (data, test)
    )
    cut = partial(calibration_batches, samples=samples, batch_size=batch_size, seed=seed)
    batches = cut(data)
    settings = {
        "replacement": replacement,
        "criterion": None if budget is None else readable_name(criterion),
        "budget": None if budget is None else str(budget),
        "sites": None if sites is None else [readable_name(site) for site in listed(sites)],
        "activations": [readable_name(each) for each in activations] or None,
        "code": [code_hash(each) for each in (criterion, *listed(sites), *activations) if callable(each)],
        "samples": samples,
        "seed": seed,
        "batch_size": batch_size,
        "length": length,
    }
    with ExitStack() as stack:
        where, network, replacer = stack.enter_context(
            prepared(
                model, batches, sites=sites, activations=activations, replacement=replacement, device=device
            )
        )
        slots = replacer.left
        limit = parse_budget(budget, slots)
        weights, contents = hash_contents(original, data)()
        data_facts = {**describe_data(data, first_sample(batches)[0]), **contents}
        trial = tested = Trial(network, data, batches, where, model)
        if test is not None:
            held_out = cut(test, parameter="test")
            tested = Trial(network, test, held_out, where, model, "test")
            facts_of_test = Provenance(data=describe_data(test, first_sample(held_out)[0]))
            contents = hash_contents(original, test)()[1] or {"sha256": facts_of_test.fingerprint()}
            settings |= {"test": facts_of_test.data.get("name", "?"), "test_sha256": contents["sha256"]}
            settings["test_inputs"] = tested.inputs
        identity = Provenance({**facts, "checksum": weights}, data_facts, settings)
        choice = Choice(slots, trial, tested, replacement, activations)
        if limit.unit != "points" and (reason := choice.original.label_problem):
            warnings.warn(f"the labels are not used: {reason}", stacklevel=2)
        show = stack.enter_context(shown(progress, "sites"))
        if budget is None:
            choice.replace_all(show)
        else:
            log = Journal(None if journal is None else Path(journal), identity)
            choice.run(criterion, limit, seed, log, show)
        _finish(network, replacer, choice.replaced)
        _check_runs(network, batches[0], where)
    if replacement == "channel":
        _warn_of_constant_channels(choice)
    provenance = replace(
        identity,
        versions=versions(),
        device=describe_device(where),
        date=now(),
        seconds=round(time.perf_counter() - started, 3),
    )
    network.linearized = Linearized(  # type: ignore[assignment]
        tuple(slot.site for slot in slots),
        pd.DataFrame(choice.curve),
        choice.table(),
        KL if tested.are_logits else SQUARED_ERROR,
        provenance,
    )
    return network


def site_costs(
    model: nn.Module | LoadedModel,
    data: Any,
    criteria: str | Sequence[str] = "kl",
    *,
    sites: SiteFilter | Iterable[SiteFilter] | None = None,
    replacement: Kind = "channel",
    activations: Sequence[type[nn.Module] | Callable[..., Any]] = (),
    samples: int = 1024,
    tokenizer: Any = None,
    length: int | None = None,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    seed: int = 0,
    progress: bool | Progress = False,
) -> pd.DataFrame:
    """Return what it costs to replace each site alone: a row for each of them, a column for each criterion.

    `criteria` are names, also in one text with commas between them. Besides the criteria, which `linearize`
    explains with the other arguments, there are `operator`, `width`, `elements` (for each input) and `r2`,
    the share of the variance that the map explains.
    """
    check_choice("replacement", replacement, Kind)
    criteria = criteria.replace(" ", "").split(",") if isinstance(criteria, str) else criteria
    for criterion in criteria:
        if not isinstance(criterion, str):
            raise InputError(f"expected names of criteria, got {criterion!r}", parameter="criteria")
        check_criterion(criterion, "criteria")
    data = tokenised(model, with_labels(data), tokenizer, length, batch_size, seed)
    batches = calibration_batches(data, samples, batch_size, seed)
    with ExitStack() as stack:
        where, network, replacer = stack.enter_context(
            prepared(
                model, batches, sites=sites, activations=activations, replacement=replacement, device=device
            )
        )
        show = stack.enter_context(shown(progress, "sites"))
        trial = Trial(network, data, batches, where, model)
        slots = replacer.left
        choice = Choice(slots, trial, trial, replacement, activations)
        choice.fit()
        found = choice.table()[["operator", "width", "elements", "r2"]]
        for criterion in criteria:
            costs = choice.costs_by(criterion, seed, show)
            sign = 1 if smallest_first(criterion) else -1
            column = f"{criterion} (gauge)" if criterion in found else criterion
            found[column] = [sign * costs[slot] for slot in slots]  # gauges as they are
    return found


class PreparedNetwork(NamedTuple):
    """A copy of a network whose calls can be replaced."""

    device: torch.device
    network: nn.Module
    replacer: Replacer


@contextmanager
def prepared(
    model: nn.Module | LoadedModel,
    batches: Sequence[Any],
    *,
    sites: SiteFilter | Iterable[SiteFilter] | None = None,
    activations: Sequence[type[nn.Module] | Callable[..., Any]] = (),
    replacement: Kind = "channel",
    device: str | torch.device | None = None,
) -> Iterator[PreparedNetwork]:
    """Copy a network, in eval mode on the device, and find its calls."""
    original = unwrapped(model.module if isinstance(model, LoadedModel) else model)
    network = copied(original)
    few = slice_inputs(batches[0], 0, _SEARCH_INPUTS, input_count(batches[0]))
    with placed(network, device) as where, evaluating(network):
        with torch.no_grad():
            replacer = find_slots(network, lambda: forward(network, few, where), sites, activations)
        wholes = [slot.site for slot in replacer.slots if slot.site.kind == "module"]
        for slot in replacer.slots:
            before, after = slot.widths
            is_new = slot.replacement is None
            if is_new and not slot.reason and before != after and replacement != "affine":
                slot.reason = (
                    f"its width changes from {before} to {after}; only replacement='affine' can do that"
                )
            outer = next((each for each in wholes if slot.site.module.startswith(f"{each.module}.")), None)
            if outer is not None:
                slot.reason = f"it is inside {outer}, which is replaced as a whole; choose one of them"
            if slot.reason:
                raise InputError(f"{slot.site} cannot be replaced: {slot.reason}", parameter="sites")
        yield PreparedNetwork(where, network, replacer)


def _finish(network: nn.Module, replacer: Replacer, chosen: Sequence[Slot]) -> None:
    """Leave only what was chosen, with each map as a child of the module that makes the call."""
    replacer.keep_replaced()
    emptied = {slot.site.module for slot in chosen if slot.site.kind == "module" and slot.is_only}
    for module in map(network.get_submodule, emptied):  # their weights are of no more use
        for part in (module._modules, module._parameters, module._buffers):
            part.clear()
    paths = dict(network.named_modules())
    for slot in chosen:
        assert slot.replacement is not None
        path, key = slot.site.module, f"{slot.site.operator}_{slot.site.call}"
        if path not in emptied and _runs_its_children(paths[path]):
            homes = {path: module for path, module in paths.items() if MAPS not in path.split(".")}
            path = next(path for path, module in homes.items() if not _runs_its_children(module))
            key = re.sub(r"\W+", "_", slot.site.name)
        maps = paths[path]._modules.setdefault(MAPS, nn.ModuleDict())
        assert isinstance(maps, nn.ModuleDict)
        maps[key] = slot.replacement


def _check_runs(network: nn.Module, value: Any, device: torch.device) -> None:
    """Refuse a network that fails with its maps in place, for example because it runs all its modules."""
    try:
        with torch.no_grad():
            forward(network, slice_inputs(value, 0, _SEARCH_INPUTS, input_count(value)), device)
    except ForwardError as error:
        raise InputError(
            f"with its maps in place, {error}; leave out sites of modules whose children or weights are used "
            "by others",
            parameter="sites",
        ) from error


def _runs_its_children(module: nn.Module) -> bool:
    """Tell whether a module runs all of its children, so that it must not get another one."""
    code = getattr(type(module).forward, "__code__", None)
    names = () if code is None else code.co_names
    return isinstance(module, _CONTAINERS) or not {"children", "named_children", "_modules"}.isdisjoint(names)


def _warn_of_constant_channels(choice: Choice) -> None:
    found = {slot: choice.fits[slot].constant for slot in choice.replaced if choice.fits[slot].constant}
    if found:
        names = join_names([f"{slot.site} ({count} of {slot.widths[0]})" for slot, count in found.items()])
        warnings.warn(
            f"channels whose inputs do not vary on the data get a line of slope 0: {names}", stacklevel=3
        )
