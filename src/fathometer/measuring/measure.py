"""The front door: a network and data in, a sounding out, in one pass over the data."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import torch
from torch import Tensor, nn

from fathometer.capture import Site, Watch, unwrapped, watch
from fathometer.data import DataSource
from fathometer.errors import (
    FathometerError,
    ForwardError,
    InputError,
    OutOfMemoryError,
    TooFewSamplesError,
    check_whole,
    first_line,
    is_out_of_memory,
)
from fathometer.gauges.registry import Gauge, read_gauges
from fathometer.measuring.batches import Piece, batches_of, first_sample, not_finite, pieces, run
from fathometer.measuring.journal import Journal, open_journal
from fathometer.measuring.options import Call, Leftover, MeasureOptions, with_changes
from fathometer.measuring.placement import evaluating, placed
from fathometer.models import LoadedModel
from fathometer.progress import progress_bar
from fathometer.results.provenance import (
    Provenance,
    describe_device,
    describe_model,
    frozen_state,
    now,
    tensor_hash,
    versions,
    weights_hash,
)
from fathometer.results.sounding import Sounding

Progress: TypeAlias = "Callable[[int, int | None], None]"


def measure(
    model: nn.Module | LoadedModel,
    data: Any,
    options: MeasureOptions | None = None,
    *,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    name: str | None = None,
    journal: str | Path | None = None,
    progress: bool | Progress = False,
    **changes: Any,
) -> Sounding:
    """Measure a network: compute every gauge at every activation call, over a data set.

    The network runs in eval mode without gradients, once over the data. The reduced pair of every activation
    call is kept until there are `samples` of them; then they are measured and forgotten.

    Args:
        model: any `nn.Module`, or the result of `fathometer.models.load_model`.
        data: a `DataLoader`, a `Dataset`, one tensor, or any iterable of tensors, `(tensor, label)` or dicts.
        options: what decides the values: `samples`, `batches`, `gauges`, `sites`, `activations`, `reduction`,
            `leftover`, `seed`, `call` and more (`MeasureOptions`). Usually they are given by name.
        batch_size: the largest number of inputs in a forward pass; as the data come if left out.
        device: where to run; where the network is if left out.
        name: name of the network in the result.
        journal: a file that keeps the finished batches; if it exists, measuring resumes from there. Remove
            it once the result is saved.
        progress: True for a bar, or a function of (samples done, total or None).
        changes: options by name, `samples=128`.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh())
        >>> sounding = measure(net, torch.randn(200, 4), samples=100)
        >>> list(sounding.signature.index), sounding.table["affinity", "count"].to_list()
        (['1', '3'], [2, 2])
    """
    started = time.perf_counter()
    network, model_facts = _network(model, name)
    options = with_changes(options, changes)
    chosen, reduction, call = options.chosen_gauges, options.reduction, options.call
    samples, batches, first_batch = options.samples, options.batches, options.first_batch
    sites, activations, widths, leftover = (
        options.sites,
        options.activations,
        options.widths,
        options.leftover,
    )
    seed = options.seed
    if batch_size is not None:
        batch_size = check_whole("batch_size", batch_size, 1)
    first, items = first_sample(batches_of(data, batch_size, seed))
    described = options.describe()
    settings = {key: value for key, value in described.items() if key not in ("batches", "first_batch")}
    data_facts = _data_facts(data, first)
    with ExitStack() as stack:
        where = stack.enter_context(placed(network, device))
        hashing = stack.enter_context(ThreadPoolExecutor(1)).submit(weights_hash, frozen_state(network))
        log = None
        if journal is not None:
            facts = {**model_facts, "sha256": hashing.result()}
            wanted = {"model": facts, "data": data_facts, "settings": settings}
            log = stack.enter_context(open_journal(Path(journal), wanted, first_batch))
        show = stack.enter_context(progress_bar("measuring")) if progress is True else progress or _silent
        stack.enter_context(evaluating(network))
        stack.enter_context(torch.no_grad())
        seen = stack.enter_context(
            watch(
                network,
                sites=sites,
                activations=activations,
                reduction=reduction,
                capacity=samples,
                widths=widths,
            )
        )
        tokens = reduction.pooling == "tokens"
        if first_batch and not tokens and isinstance(data, DataSource):
            seen.samples, rest = data.beginning_at(first_batch * samples)
            items = iter(rest)
        cut = pieces(items, samples, batch_size, tokens=tokens, before=seen.samples)
        loop = _Loop(network, seen, chosen, samples, where, call, log, batches, first_batch)
        in_all = None if tokens else _in_all(data, samples, batches, first_batch, leftover)
        used, over = loop.over(cut, leftover, in_all, show)
        model_facts["sha256"] = hashing.result()
    return Sounding(
        *_sites_and_records(loop.finished, seen, used + over, samples, first_batch, tokens=tokens),
        Provenance(
            model=model_facts,
            data={
                **data_facts,
                "samples_measured": used,
                "samples_left_over": over,
                "skipped": len(getattr(data, "skipped", ())),
            },
            settings={**settings, "batches": batches, "first_batch": first_batch, "batch_size": batch_size},
            versions=versions(),
            device=describe_device(where),
            date=now(),
            seconds=round(time.perf_counter() - started, 3),
        ),
    )


class _Loop:
    """Forward passes and, whenever a batch is full, gauges."""

    def __init__(
        self,
        network: nn.Module,
        seen: Watch,
        gauges: dict[str, Gauge],
        samples: int,
        device: torch.device,
        call: Call | None,
        log: Journal | None,
        batches: int | None,
        first: int,
    ) -> None:
        self.finished: list[dict[str, Any]] = [] if log is None else log.batches[:batches]
        for row in (row for batch in self.finished for row in batch["rows"]):
            site = row["site"]
            seen.site(site["module"], site["operator"], site["call"], own=site["own"])  # in the same order
        self._first, self._stop = first, None if batches is None else first + batches
        self._network, self._seen, self._gauges, self._samples = network, seen, gauges, samples
        self._device, self._call, self._log = device, call, log
        self._read = 0  # samples of the data so far
        self._spoilt: int | None = None  # the first of them, in this batch, that is not finite itself

    def over(
        self,
        cut: Iterator[Piece],
        leftover: Leftover,
        in_all: int | None,
        show: Progress,
    ) -> tuple[int, int]:
        """Go over the data; how many samples were measured, and how many were left over."""
        used, fresh = 0, 0  # samples of full batches, and those of the batch that is not full yet
        known, current = self._first + len(self.finished), 0
        for piece in cut:
            current = piece.batch
            fresh += piece.samples if current >= self._first else 0
            if current < known:
                self._seen.samples += piece.samples  # random positions depend on the place in the data
            else:
                self._forward(piece)
            self._read += piece.samples
            show(used + fresh, in_all)
            if piece.completes:
                used, fresh = used + fresh, 0
                if current >= known:
                    self._finish(current)
                if self._stop is not None and current + 1 >= self._stop:
                    break
        if leftover == "keep" and (fresh > 1 or (fresh and self._is_enough)):
            if current >= known:
                self._finish(current)
            used, fresh = used + fresh, 0
        return used, fresh

    @property
    def _is_enough(self) -> bool:
        """Whether a single input has given several samples, as the tokens of a text."""
        return any(len(pair.x) > 1 for pair in self._seen.pairs.values())

    def _forward(self, piece: Piece) -> None:
        if self._spoilt is None and self._call is None:
            row = not_finite(piece.value)
            self._spoilt = None if row is None else self._read + row
        try:
            run(self._network, piece.value, self._device, self._call)
        except FathometerError:
            raise
        except Exception as error:
            if is_out_of_memory(error):
                raise OutOfMemoryError(
                    f"out of memory in a forward pass of {piece.samples} inputs; "
                    "give a smaller batch_size (--batch-size)"
                ) from error
            reason = f"{type(error).__name__}: {first_line(error)}"
            hint = "; `call` can run it in another way" if isinstance(error, TypeError) else ""
            raise ForwardError(f"the network failed on its input ({reason}){hint}") from error

    def _finish(self, number: int) -> None:
        pairs = {site: pair for site, pair in self._seen.pairs.items() if len(pair.x) >= 2}
        try:
            # The watch sees every call of a torch function: those of the gauges need not pass by it.
            with torch.autocast(self._device.type, enabled=False), torch._C.DisableTorchFunction():
                values = read_gauges(self._gauges, {site.name: pair for site, pair in pairs.items()})
        except InputError as error:
            if self._spoilt is None or all(bool(side.isfinite().all()) for p in pairs.values() for side in p):
                raise
            where = f"first in sample {self._spoilt} as they are read"
            raise InputError(f"{error}; the data have NaN or inf themselves, {where}") from error
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            raise OutOfMemoryError(
                f"out of memory in the gauges; ask for fewer samples than {self._samples}"
            ) from error
        self._spoilt = None
        rows = [
            {"site": asdict(site), "n": len(y), "d": y.shape[1], "values": found}
            for (site, (_, y)), found in zip(pairs.items(), values, strict=True)
        ]
        if not rows and not self.finished:
            raise _nothing_to_measure(self._seen, self._network)
        self._seen.clear()
        self.finished.append({"batch": number, "rows": rows})
        if self._log is not None:
            self._log.add(self.finished[-1])


def _network(model: nn.Module | LoadedModel, name: str | None) -> tuple[nn.Module, dict[str, Any]]:
    if isinstance(model, LoadedModel):
        network = unwrapped(model.module)
        facts = {"weights": model.weights, "preprocess": model.inputs.preprocess_name}
        return network, {**describe_model(network, name or model.name), **facts}
    network = unwrapped(model)
    return network, describe_model(network, name)


def _data_facts(data: Any, first: Tensor | None) -> dict[str, Any]:
    """What the data say of themselves, or what they are; and their first sample, to know them by."""
    inner = getattr(data, "dataset", data)
    described = getattr(data, "description", None) or getattr(inner, "description", None)
    facts = dict(described) if isinstance(described, Mapping) else {"name": type(inner).__name__}
    if first is None:
        return facts
    return {**facts, "sample_shape": list(first.shape), "first_sample_sha256": tensor_hash(first)}


def _in_all(data: Any, samples: int, batches: int | None, first_batch: int, leftover: Leftover) -> int | None:
    """How many samples there will be, if that is known."""
    loader = getattr(data, "dataset", data)
    try:
        length = len(loader)
    except TypeError:
        return None if batches is None else samples * batches
    if isinstance(data, list | tuple):
        return None if batches is None else samples * batches
    whole = length if leftover == "keep" else length // samples * samples
    whole = max(whole - first_batch * samples, 1)
    return whole if batches is None else min(whole, samples * batches)


def _sites_and_records(
    finished: Sequence[dict[str, Any]],
    seen: Watch,
    inputs: int,
    samples: int,
    first_batch: int,
    *,
    tokens: bool,
) -> tuple[tuple[Site, ...], pd.DataFrame]:
    for name, shapes in seen.unequal.items():
        warnings.warn(f"{name} is not measured: its width changes ({shapes})", stacklevel=3)
    if not finished:
        where = f" after the first {first_batch} batches" if first_batch else ""
        unit, got = ("tokens", f"fewer in {inputs} inputs") if tokens else ("samples", f"{inputs}")
        raise TooFewSamplesError(
            f"data: expected at least {samples} {unit}{where} to fill a batch, got {got}; "
            "ask for fewer samples, or keep what is left over (leftover='keep', --leftover keep)"
        )
    rows = [(batch["batch"], row) for batch in finished for row in batch["rows"]]
    sites: dict[str, Site] = {}
    for _, row in rows:
        site = Site(**row["site"])
        sites.setdefault(site.name, site)
    ordered = sorted(sites.values(), key=lambda site: site.order)
    records = pd.DataFrame(
        [
            {"site": Site(**row["site"]).name, "batch": batch, "n": row["n"], "d": row["d"], **row["values"]}
            for batch, row in rows
        ]
    )
    return tuple(ordered), records


def _nothing_to_measure(seen: Watch, network: nn.Module) -> InputError:
    known = ", ".join(site.name for site in seen.called[:8]) or "none"
    recurrent = any(isinstance(module, nn.RNNBase) for module in network.modules())
    gates = "; gates inside nn.LSTM and nn.GRU cannot be seen" if recurrent else ""
    return InputError(
        f"no site to measure; the activation calls seen are: {known}. Choose by sites=… (--sites), and name "
        "classes and functions of your own by activations=[…] (--activation package.module:name)" + gates
    )


def _silent(done: int, in_all: int | None) -> None:
    del done, in_all
