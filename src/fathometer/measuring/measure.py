"""The front door: a network and data in, a sounding out, in one pass over the data."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, overload

import pandas as pd
import torch
from torch import nn

from fathometer.capture import Site, Watch, watch
from fathometer.errors import TooFewSamplesError, check_whole, join_names
from fathometer.gauges.gauge import LABELS
from fathometer.gauges.registry import MAX_TRIMMED_GAP, SETS
from fathometer.gauges.together import Pairs
from fathometer.measuring.batches import batches_of, first_sample, pieces, with_labels
from fathometer.measuring.identity import count_samples, describe_data, describe_network, hash_contents
from fathometer.measuring.journal import FinishedBatch, Journal
from fathometer.measuring.language_scores import HiddenTokens
from fathometer.measuring.loop import Loop, OnPass, Progress, evaluating, placed, with_advice
from fathometer.measuring.options import MeasureOptions, with_changes
from fathometer.measuring.scores import Scorer, classes_of, outcome
from fathometer.measuring.similarity import map_of_batches
from fathometer.measuring.splitting import (
    By,
    SplitByLabel,
    check_by,
    describe_by,
    of_label,
    parts_of,
)
from fathometer.measuring.texts import checked, tokenised
from fathometer.models import LoadedModel
from fathometer.progress import shown
from fathometer.results.provenance import Provenance, describe_device, now, versions
from fathometer.results.sounding import Sounding
from fathometer.threads import Pool

_MAX_CARRIED = 0.5  # of the variance, by 1 % of the samples
_MIN_SAMPLES_TO_CARRY = 100  # with fewer, a single sample is more than 1 %
_MIN_CAPACITY = 2**16  # rows; only a larger `samples` is limited to the size of the data


@overload
def measure(
    model: nn.Module | LoadedModel,
    data: Any,
    options: MeasureOptions | None = None,
    *,
    by: None = None,
    tokenizer: Any = None,
    length: int | None = None,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    name: str | None = None,
    journal: str | Path | None = None,
    progress: bool | Progress = False,
    **changes: Any,
) -> Sounding: ...


@overload
def measure(
    model: nn.Module | LoadedModel,
    data: Any,
    options: MeasureOptions | None = None,
    *,
    by: By,
    tokenizer: Any = None,
    length: int | None = None,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    name: str | None = None,
    journal: str | Path | None = None,
    progress: bool | Progress = False,
    **changes: Any,
) -> dict[str, Sounding]: ...


def measure(
    model: nn.Module | LoadedModel,
    data: Any,
    options: MeasureOptions | None = None,
    *,
    by: By | None = None,
    tokenizer: Any = None,
    length: int | None = None,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    name: str | None = None,
    journal: str | Path | None = None,
    progress: bool | Progress = False,
    **changes: Any,
) -> Sounding | dict[str, Sounding]:
    """Measure a network: compute every gauge at every activation call, over a data set.

    The network runs in eval mode without gradients, once over the data. The reduced pair of every activation
    call is kept until there are `samples` of them; then they are measured and forgotten.

    Args:
        model: any `nn.Module`, or the result of `fathometer.models.load_model`.
        data: a `DataLoader`, a `Dataset`, one tensor, a pair of all inputs and their labels, a dict of
            tensors as a tokenizer returns it, or any iterable of batches: tensors, `(tensor, label)` or
            dicts. For a language model also a list of texts, or a Hugging Face data set with a column
            `input_ids` or `text`.
        options: what decides the values: `samples`, `batches`, `gauges`, `sites`, `activations`, `reduction`,
            `leftover`, `seed`, `map`, `call` and more (`MeasureOptions`). Usually they are given by name.
        by: split the data by label, and return a sounding for each of them, by its name: `"class"` for the
            labels of the data, the name of an entry of dict batches, or a function of a batch that returns
            a label for each input. The inputs of a label wait in memory until there are `samples` of them.
        tokenizer: turns texts into token ids: a tokenizer of transformers, or a function that returns the
            ids of a text. Default: the one that came with the network (`load_model("hf:...")`).
        length: number of tokens in a block of text. A longer text is cut into consecutive blocks, which do
            not overlap; shorter ones are padded and masked. Default: 128, or the context if that is less.
        batch_size: the largest number of inputs in a forward pass; as the data come if left out.
        device: where to run; where the network is if left out.
        name: name of the network in the result.
        journal: a file that keeps the finished batches; if it exists, measuring resumes from there. Remove
            it once the result is saved.
        progress: True for a bar, and a line that says how long it takes if that is more than 20 seconds; or a
            function of (samples done, total or None).
        changes: options by name, `samples=128`. `preset="language"` stands for those that are usual for a
            language model (`fathometer.measuring.options.PRESETS`); options that are given win.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh())
        >>> sounding = measure(net, torch.randn(200, 4), samples=100)
        >>> list(sounding.signature.index), sounding.table["affinity", "count"].to_list()
        (['1', '3'], [2, 2])
    """
    found = measure_by_label(
        model,
        data,
        with_changes(options, changes),
        by=None if by is None else check_by(by),
        tokenizer=tokenizer,
        length=length,
        batch_size=batch_size,
        device=device,
        name=name,
        journal=journal,
        progress=progress,
    )
    return found[""] if by is None else found


def measure_by_label(
    model: nn.Module | LoadedModel,
    data: Any,
    options: MeasureOptions,
    read: Callable[[Pairs], list[dict[str, float]]] | None = None,
    *,
    on_pass: OnPass = lambda _, __: None,
    by: By | None = None,
    tokenizer: Any = None,
    length: int | None = None,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    name: str | None = None,
    journal: str | Path | None = None,
    progress: bool | Progress = False,
) -> dict[str, Sounding]:
    """Measure as `measure` does; return the soundings by label, or one under an empty name.

    `read` computes the values of all sites instead of the options' gauges. `on_pass` is called with
    the input and the output of every forward pass.
    """
    started = time.perf_counter()
    batch_size = None if batch_size is None else check_whole("batch_size", batch_size, 1)
    network, model_facts = describe_network(model, name)
    data = tokenised(model, with_labels(data), tokenizer, length, batch_size, options.seed)
    part, *others = parts_of(data, by)
    first, items = first_sample(batches_of(part, batch_size, options.seed))
    identity = Provenance(model_facts, describe_data(data, first), options.describe() | describe_by(by))
    with ExitStack() as stack:
        where = stack.enter_context(placed(network, device))
        hashing = stack.enter_context(Pool(1)).submit(hash_contents(network, data))
        log = None
        if journal is not None:
            log = Journal(Path(journal), _with_hashes(identity, *hashing.result()))
        show = stack.enter_context(shown(progress, "measuring"))
        stack.enter_context(evaluating(network))
        stack.enter_context(torch.no_grad())
        total = None if options.counts_tokens else _total(data, options)
        record = stack.enter_context(
            watch(
                network,
                sites=options.sites,
                activations=options.activations,
                reduction=options.reduction,
                capacity=_capacity(options.samples, total),
                widths="any" if read or any(g.unequal for g in options.chosen_gauges.values()) else "equal",
                residual=options.residual,
            )
        )
        scorer = Scorer(model, data)
        split = None
        if by is not None:
            split = SplitByLabel([items, *others], by, classes_of(data), options, batch_size)
            options = replace(options, batches=None, leftover="drop")  # the split does both
            total = None
        cut = split or pieces(items, options.samples, batch_size, tokens=options.counts_tokens)
        hidden = HiddenTokens(model, network, tokenizer, options.seed)
        holds_out = not options.chosen_gauges.keys().isdisjoint(("r2_heldout", "r2_trimmed"))
        cut = cut if options.call else hidden.keeping(checked(cut, network, holds_out=holds_out))
        loop = Loop(network, record, options, where, log, scorer, read, on_pass)
        measured, left_over = loop.run(iter(cut), total, show)
        identity = _with_hashes(identity, *hashing.result())
    _warn_of_missing_sites(record, loop.finished)
    _warn_of_missing_labels(loop.finished, options)
    if read is None:
        _warn_of_unequal_widths(loop.finished, options)
    _warn_of_few_samples_that_decide(loop.finished)
    if split is not None:
        split.check()
    elif not loop.finished:
        raise _too_few(options, measured + left_over, max(record.rows.values(), default=0))
    provenance = replace(
        identity,
        settings={**identity.settings, "batch_size": batch_size},
        versions=versions(),
        device=describe_device(where),
        date=now(),
        seconds=round(time.perf_counter() - started, 3),
    )
    hidden_outcome = {}
    if hidden.is_any and by is None:
        with placed(network, device) as where, evaluating(network):
            hidden_outcome = hidden.outcome(where)
    label_problem = scorer.label_problem([batch.scores for batch in loop.finished if batch.scores])
    counts = {None: (measured, left_over)} if split is None else split.counts
    found = {}
    for label, (measured, left_over) in counts.items():
        batches = [batch for batch in loop.finished if batch.label == label]
        scored = outcome([batch.scores for batch in batches], measured, label_problem) | hidden_outcome
        known = {
            "samples_measured": measured,
            "samples_left_over": left_over,
            "skipped": len(getattr(data, "skipped", ())),
            **({"outcome": scored} if scored else {}),
        }
        own = provenance if label is None else of_label(provenance, label)
        own = replace(own, data={**own.data, **known})
        sites, records = _sites_and_records(batches, list(options.chosen_gauges))
        similarity = map_of_batches(sites, batches) if options.map else None
        found[label or ""] = Sounding(sites, records, own, similarity)
    return found


def _warn_of_missing_sites(record: Watch, finished: Sequence[FinishedBatch]) -> None:
    """Say which sites were asked for and have no values, and why."""
    for site, reason in record.left_out.items():
        warnings.warn(f"{site} is not measured: {with_advice(reason)}", stacklevel=4)
    if record.never_called:
        fused = (
            ": attention is computed in one kernel (scaled_dot_product_attention), which hides it; in "
            'Python, load the model with attn_implementation="eager"'
        )
        hint = fused if record.has_fused_attention else "; the network does not call it, or inside a kernel"
        warnings.warn(f"no call of {join_names(record.never_called)} was seen{hint}", stacklevel=4)
    if record.with_padding:
        names = join_names(sorted(site.name for site in record.with_padding))
        warnings.warn(
            f"padding counts at {names}, since rows there are not those of the texts, as where tokens go to "
            "experts; join short texts into long ones, so that there is no padding",
            stacklevel=4,
        )
    measured = {row.site.name for batch in finished for row in batch.rows} | record.left_out.keys()
    few = [site.name for site in record.sites if finished and site.name not in measured]
    if few:
        warnings.warn(
            f"not measured, with fewer than two samples in each batch: {join_names(few)}", stacklevel=4
        )


def expected_provenance(
    model: nn.Module | LoadedModel,
    data: Any,
    options: MeasureOptions,
    *,
    by: By | None = None,
) -> Provenance:
    """Return the identity of a measurement without running it, to compare with that of a finished one.

    With `by`, `of_label` makes that of each sounding.

    Only data that can be iterated over again may be given: their first item is read.
    """
    network, model_facts = describe_network(model, None)
    first, _ = first_sample(batches_of(parts_of(data, by)[0], None, options.seed))
    identity = Provenance(model_facts, describe_data(data, first), options.describe() | describe_by(by))
    return _with_hashes(identity, *hash_contents(network, data)())


def _with_hashes(identity: Provenance, weights: str, data: dict[str, Any]) -> Provenance:
    return replace(identity, model={**identity.model, "checksum": weights}, data={**identity.data, **data})


def _total(data: Any, options: MeasureOptions) -> int | None:
    """Return how many samples will be read, if that is known."""
    count, samples = count_samples(data), options.samples
    limit = None if options.batches is None else samples * options.batches
    if count is None:
        return limit
    count = max(count if options.leftover == "keep" else count // samples * samples, 1)
    return count if limit is None else min(count, limit)


def _capacity(samples: int, total: int | None) -> int:
    """Return the number of rows to make room for: a huge `samples` stands for all that there are."""
    return samples if total is None else min(samples, max(total, _MIN_CAPACITY))


def _too_few(options: MeasureOptions, inputs: int, rows: int) -> TooFewSamplesError:
    unit, got = (
        ("tokens", f"{rows} in {inputs} inputs") if options.counts_tokens else ("samples", f"{inputs}")
    )
    if options.leftover == "keep":
        return TooFewSamplesError(f"expected at least 2 {unit}, got {got}", parameter="data")
    return TooFewSamplesError(
        f"expected at least {options.samples} {unit} to fill a batch, got {got}; "
        f"lower samples (to {max(rows if options.counts_tokens else inputs, 2)}), or set leftover to keep",
        parameter="data",
    )


def _warn_of_missing_labels(finished: Sequence[FinishedBatch], options: MeasureOptions) -> None:
    """Name gauges that were asked for, not as part of `standard`, and could not be read without labels."""
    chosen = options.chosen_gauges
    read = {column for batch in finished for row in batch.rows for column in row.values}
    needing = [name for name, gauge in chosen.items() if LABELS in gauge.needs]
    missing = [name for name in needing if not any(column.startswith(name) for column in read)]
    if missing and read and not chosen.keys() >= set(SETS["standard"]):
        warnings.warn(
            f"not measured, since the data have no label for each sample: {', '.join(missing)}", stacklevel=4
        )


def _warn_of_unequal_widths(finished: Sequence[FinishedBatch], options: MeasureOptions) -> None:
    """Name gauges that could not be read where the width changes, and these sites."""
    sites: dict[str, None] = {}
    gauges: dict[str, None] = {}
    for row in (row for batch in finished[:1] for row in batch.rows):
        chosen = [options.chosen_gauges[name] for name in options.gauges_at(row.site.kind)]
        always = [gauge for gauge in chosen if not gauge.missing and LABELS not in gauge.needs]
        equal = [gauge.name for gauge in always if not gauge.unequal]
        read = [column for column, value in row.values.items() if not math.isnan(value)]
        if equal and not any(column.startswith(name) for column in read for name in equal):
            sites[row.site.name] = None
            gauges |= dict.fromkeys(equal)
    if sites:
        warnings.warn(
            f"not measured at {join_names(list(sites))}, whose width changes: {join_names(list(gauges))}; "
            "use r2, r2_heldout or cka there",
            stacklevel=4,
        )


def _warn_of_few_samples_that_decide(finished: Sequence[FinishedBatch]) -> None:
    """Name sites where R² changes much without the largest samples, or where these carry most of it."""
    rows = [row for batch in finished for row in batch.rows if "r2_heldout" in row.values]
    carried = {
        row.site.name: row.values["carriers_y"]
        for row in rows
        if "r2_trimmed" not in row.values
        and row.n >= _MIN_SAMPLES_TO_CARRY
        and row.values.get("carriers_y", 0.0) > _MAX_CARRIED
    }
    if carried:
        warnings.warn(
            f"a few samples decide R² at {join_names(list(carried), 3)}, where 1 % of them carry more than "
            "half of the variance of the outputs; add the gauge r2_trimmed",
            stacklevel=4,
        )
    gaps: dict[str, list[float]] = {}
    for row in rows:
        if "r2_trimmed" in row.values:
            gap = row.values["r2_heldout"] - row.values["r2_trimmed"]
            gaps.setdefault(row.site.name, []).append(gap)
    wide = [name for name, values in gaps.items() if abs(fmean(values)) > MAX_TRIMMED_GAP]
    if wide:
        warnings.warn(
            f"a few samples decide R² at {join_names(wide, 3)}: r2_heldout and r2_trimmed differ by more "
            f"than {MAX_TRIMMED_GAP}; read r2_trimmed there, and carriers",
            stacklevel=4,
        )


def _sites_and_records(
    finished: Sequence[FinishedBatch], gauges: Sequence[str]
) -> tuple[tuple[Site, ...], pd.DataFrame]:
    """Return the sites in order of depth, and their values, with gauges in the order that was asked for."""

    def place(column: str) -> int:
        names = [name for name in gauges if column == name or column.startswith(f"{name}_")]
        return gauges.index(max(names, key=len)) if names else len(gauges)

    rows = [(number, row) for number, batch in enumerate(finished) for row in batch.rows]
    sites = {row.site.name: row.site for _, row in reversed(rows)}
    records = pd.DataFrame(
        [{"site": row.site.name, "batch": batch, "n": row.n, "d": row.d, **row.values} for batch, row in rows]
    )
    columns = sorted(records.columns[4:], key=place)  # sites of different kinds may have other gauges
    records = records[["site", "batch", "n", "d", *columns]]
    return tuple(sorted(sites.values(), key=lambda site: site.order)), records
