"""The pass over the data: forward passes and, whenever a batch is full, gauges."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from fathometer.capture import Pair, Site, Watch
from fathometer.errors import (
    FathometerError,
    ForwardError,
    InputError,
    OutOfMemoryError,
    check_device,
    first_line,
    is_out_of_memory,
    join_names,
)
from fathometer.gauges.reading import read_gauges
from fathometer.gauges.together import Pairs
from fathometer.measuring.background import Background
from fathometer.measuring.batches import Piece, labels_of, run
from fathometer.measuring.estimate import Estimate
from fathometer.measuring.journal import FinishedBatch, Journal, JournalError, Reading
from fathometer.measuring.options import MeasureOptions
from fathometer.measuring.scores import Scorer, Scores
from fathometer.measuring.similarity import hsic_of_batch
from fathometer.measuring.texts import missing_input
from fathometer.progress import ProgressBar

Progress: TypeAlias = "Callable[[int, int | None], None]"
"""Called with the number of samples done and their total, None if unknown."""

OnPass: TypeAlias = "Callable[[Any, Any], object]"
"""Called with the input and the output of every forward pass."""

_IN_BACKGROUND = frozenset(
    {"cuda"}
)  # where gauges run beside the next passes; a CPU needs all cores for either
_SECONDS_AFTER_INTERRUPT = 0.5  # in which a batch that is being measured can still be kept
_LOCK = threading.Lock()
_EVALUATING: dict[nn.Module, tuple[int, bool]] = {}  # measurements of a module now, and its flag before
_PLACED: dict[nn.Module, tuple[int, torch.device]] = {}  # measurements of a network now, and its home


class _FullBatch(NamedTuple):
    """What the passes over a batch have left to be measured.

    Attributes:
        number: which batch it is.
        label: the label that all its samples have, where the data are split by it.
        pairs: the pair of every site.
        rows: how many samples each site has seen, apart from those with several for each token.
        routed: sites whose samples are not the inputs.
        labels: those of each pass.
        scores: adds up what the network got right.
    """

    number: int
    label: str | None
    pairs: Mapping[Site, Pair]
    rows: Mapping[Site, int]
    routed: frozenset[Site]
    labels: Sequence[Tensor | None]
    scores: Callable[[], Scores | None]


class Loop:
    """Runs the network over the data, and measures each full batch.

    Attributes:
        finished: the batches that are measured, those of the journal included.
    """

    def __init__(
        self,
        network: nn.Module,
        record: Watch,
        options: MeasureOptions,
        device: torch.device,
        journal: Journal | None,
        scorer: Scorer,
        read: Callable[[Pairs], list[dict[str, float]]] | None = None,
        on_pass: OnPass = lambda _, __: None,
    ) -> None:
        self._on_pass = on_pass
        self._network, self._record, self._options = network, record, options
        self._device, self._journal, self._scorer = device, journal, scorer
        self._read = read
        self._bar: ProgressBar | None = None
        self._labels: list[Tensor | None] = []  # of each pass of the batch that is not full yet
        self.finished: list[FinishedBatch] = [] if journal is None else journal.batches[: options.batches]
        for row in (row for batch in self.finished for row in batch.rows):
            record.add_site(row.site)  # known from the beginning, so that sites are in the same order as then
        self._passes = 0
        self._background: Background | None = None
        self._pending: tuple[Callable[[], FinishedBatch], Future[FinishedBatch]] | None = None

    def run(self, pieces: Iterator[Piece], total: int | None, show: Progress) -> tuple[int, int]:
        """Go over the data; return how many samples were measured, and how many were left over."""
        self._bar = show if isinstance(show, ProgressBar) else None
        if self._device.type in _IN_BACKGROUND:
            self._background = Background(self._device)
        patience: float | None = None
        try:
            counts = self._run(pieces, total, show)
            self._keep_pending()
        except BaseException as error:
            patience = None if isinstance(error, Exception) else _SECONDS_AFTER_INTERRUPT
            with suppress(Exception):  # of the batch before; if it has been measured, the journal keeps it
                self._keep_pending(patience)
            raise
        finally:
            if self._background is not None:
                self._background.close(wait=patience is None)
        return counts

    def _run(self, pieces: Iterator[Piece], total: int | None, show: Progress) -> tuple[int, int]:
        options = self._options
        known = len(self.finished)
        used, pending, current = 0, 0, 0  # samples of full batches, and of the one that is not full yet
        estimate = self._new_estimate(total)
        for piece in pieces:
            current = piece.batch
            pending += piece.samples
            if current < known:
                self._record.samples += piece.samples  # random positions depend on the place in the data
            else:
                self._forward(piece)
                if estimate is not None and not estimate.is_made:
                    estimate.after_pass(self._record.pairs, completes=piece.completes)
            show(used + pending, total)
            if piece.completes:
                used, pending = used + pending, 0
                if current >= known:
                    self._measure(current, piece.label)
                elif self.finished[current].label != piece.label:
                    raise JournalError("the journal has another sequence of labels; remove it to start again")
                if current + 1 == options.batches:
                    break
        del self.finished[current + 1 :]  # the journal may have more batches of each label
        if options.leftover == "keep" and (pending > 1 or (pending and self._has_several_rows())):
            if current >= known:
                self._measure(current)
            used, pending = used + pending, 0
        return used, pending

    def _new_estimate(self, total: int | None) -> Estimate | None:
        """Return what estimates how long this takes, where somebody sees it and the gauges are known."""
        if self._bar is None or self._read is not None:
            return None
        options, samples = self._options, self._options.samples
        batches = options.batches
        if total is not None:
            samples = min(samples, total)
            batches = -(-total // samples)
        left = None if batches is None else batches - len(self.finished)
        return Estimate(options, self._device, left, samples, self._bar.say)

    def _has_several_rows(self) -> bool:
        """Return whether a single input gave several samples, as the tokens of a text."""
        return any(len(pair.x) > 1 for pair in self._record.pairs.values())

    def _forward(self, piece: Piece) -> None:
        options = self._options
        self._passes += 1
        try:
            is_checked = self._passes == 1 and options.call is None
            with refusing_single_images(self._network, piece.value, on=is_checked):
                output = run(self._network, piece.value, self._device, options.call)
        except FathometerError:
            raise
        except Exception as error:
            if not is_out_of_memory(error):
                reason = f"{type(error).__name__}: {first_line(error)}"
                if options.call is not None:
                    kind = type(piece.value).__name__
                    raise ForwardError(
                        f"call failed on an item, which is a {kind} here ({reason})"
                    ) from error
                hint = "; `call` can run it in another way" if isinstance(error, TypeError) else ""
                hint = missing_input(self._network, piece.value) or hint
                raise ForwardError(f"the network failed on its input ({reason}){hint}") from error
            if self._pending is None:
                raise OutOfMemoryError(
                    f"out of memory in a forward pass of {piece.samples} inputs, with room for "
                    f"{options.samples} samples of every site; use a smaller batch size or fewer samples"
                ) from error
        else:  # the pass counts: from here on, it must not be run again
            self._on_pass(piece.value, output)
            self._scorer.add(output, piece.value, piece.unfit)
            self._labels.append(None if piece.unfit else labels_of(piece.value))
            return
        self._keep_pending()  # gauges beside the pass need memory, too: wait for them, and try again
        self._forward(piece)

    def _measure(self, number: int, label: str | None = None) -> None:
        """Read all gauges at all sites, and keep the values; on a GPU, while the next passes run."""
        pairs = {site: pair for site, pair in self._record.pairs.items() if len(pair.x) >= 2}
        if not pairs and not self.finished and self._pending is None:
            raise _nothing_to_measure(self._record, self._network)
        aligned = {
            site: rows for site, rows in self._record.rows.items() if site not in self._record.gathered
        }
        passes = aligned, frozenset(self._record.routed), self._labels, self._scorer.take()
        read = partial(self._read_batch, _FullBatch(number, label, pairs, *passes))
        self._labels = []
        self._keep_pending()
        if self._background is None:
            self._keep(read)
            self._record.clear()
        else:
            self._pending = read, self._background.start(read)
            self._record.clear(swap=True)

    def _keep_pending(self, patience: float | None = None) -> None:
        """Wait for the batch that is being measured, if there is one, and keep its values.

        After `patience` seconds it is given up.
        """
        if self._pending is None:
            return
        read, future = self._pending
        if not wait([future], patience).done:  # if this is interrupted, the batch is still to be kept
            return
        self._pending = None
        try:
            self._keep(future.result)
            return
        except OutOfMemoryError:
            del future  # and what it holds
        self._keep(read)  # there is more memory with no pass beside it

    def _keep(self, read: Callable[[], FinishedBatch]) -> None:
        """Keep the values of a batch."""
        try:
            self.finished.append(read())
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            raise OutOfMemoryError(
                f"out of memory in the gauges; give fewer samples than {self._options.samples}"
            ) from error
        if self._journal is not None:
            self._journal.add(self.finished[-1])

    def _read_batch(self, batch: _FullBatch) -> FinishedBatch:
        """Read all gauges at all sites."""
        pairs = batch.pairs
        # The watch sees every call of a torch function: those of the gauges need not pass it.
        with torch.autocast(self._device.type, enabled=False), torch._C.DisableTorchFunction():
            values = self._read_values(pairs, self._joined(batch.labels), batch.routed)
            hsic = hsic_of_batch(pairs, batch.rows) if self._options.map else b""
        rows = [
            Reading(site, len(y), y.shape[1], found)
            for (site, (_, y)), found in zip(pairs.items(), values, strict=True)
        ]
        if rows and self._read is None and not any(row.values for row in rows):
            raise InputError(
                f"{', '.join(self._options.chosen_gauges)}: expected data with a label for each sample, got "
                "none; give batches (inputs, labels), or other gauges",
                parameter="gauges",
            )
        return FinishedBatch(batch.number, rows, batch.scores(), hsic, batch.label)

    def _read_values(
        self, pairs: Mapping[Site, Pair], labels: Tensor | None, routed: frozenset[Site]
    ) -> list[dict[str, float]]:
        """Read the values of all sites; labels belong to those whose samples are the inputs."""
        if self._read is not None:
            return self._read({site.name: pair for site, pair in pairs.items()})
        if labels is None:
            routed = frozenset()
        found: dict[Site, dict[str, float]] = {}
        on_site = self._bar_of_gauges(len(pairs))
        groups: dict[tuple[bool, tuple[str, ...]], dict[Site, Pair]] = {}
        for site, pair in pairs.items():
            names = tuple(self._options.gauges_at(site.kind))
            groups.setdefault((site in routed, names), {})[site] = pair
        for (is_routed, names), group in groups.items():
            gauges = {name: self._options.chosen_gauges[name] for name in names}
            named = {site.name: pair for site, pair in group.items()}
            known = None if is_routed else labels
            found |= zip(group, read_gauges(gauges, named, known, on_site), strict=True)
        return [found[site] for site in pairs]

    def _bar_of_gauges(self, sites: int) -> Callable[[], None]:
        """Begin the bar of the sites of a batch, and return what moves it by one."""
        bar = self._bar
        if bar is None or self._background is not None:
            return lambda: None
        bar.part("gauges, sites", 0, sites)
        done = count(1)
        return lambda: bar.part("gauges, sites", next(done), sites)

    def _joined(self, labels: Sequence[Tensor | None]) -> Tensor | None:
        """Return the labels of a batch, if every sample is an input and has one."""
        known = [part for part in labels if part is not None]
        if self._options.counts_tokens or not known or len(known) < len(labels):
            return None
        joined = torch.cat(known)
        return joined.to(self._device, torch.long) if int(joined.min()) >= 0 else None


def with_advice(reason: str) -> str:
    """Return the reason why a site is left out, with what to do where that is known."""
    advice = "; r2, r2_heldout and cka can measure it" if reason.startswith("its width changes") else ""
    return f"{reason}{advice}"


def _nothing_to_measure(record: Watch, network: nn.Module) -> InputError:
    if record.left_out:
        reasons = [f"{site}: {with_advice(reason)}" for site, reason in record.left_out.items()]
        return InputError(f"no site to measure; {join_names(reasons, 2, '; ')}", parameter="sites")
    if record.sites:
        names = join_names([site.name for site in record.sites])
        return InputError(
            f"no site to measure: expected at least two samples in a batch at {names}, got fewer"
        )
    known = ", ".join(site.name for site in record.called[:8]) or "none"
    recurrent = any(isinstance(module, nn.RNNBase) for module in network.modules())
    gates = "; gates inside nn.LSTM and nn.GRU cannot be seen" if recurrent else ""
    return InputError(
        f"no site to measure; the activation calls seen are: {known}. Choose by `sites`, and name "
        f"classes and functions of your own by `activations`{gates}"
    )


@contextmanager
def refusing_single_images(network: nn.Module, value: Any, *, on: bool) -> Iterator[None]:
    """Refuse an image without a batch axis: torch's convolutions accept it, and its rows are not samples."""
    main = value[0] if isinstance(value, tuple | list) and value else value

    def check(module: nn.modules.conv._ConvNd, arguments: tuple[Any, ...]) -> None:
        given = arguments[0] if arguments else None
        if isinstance(given, Tensor) and given.ndim == len(module.kernel_size) + 1 == main.ndim:
            raise InputError(
                f"expected batches [samples, channels, ...], got one sample of shape {list(main.shape)}; "
                "give DataLoader(data, batch_size=32), or torch.stack the samples into one tensor",
                parameter="data",
            )

    with ExitStack() as stack:
        if on and isinstance(main, Tensor):
            for module in network.modules():
                if isinstance(module, nn.modules.conv._ConvNd):
                    stack.callback(module.register_forward_pre_hook(check).remove)
        yield


@contextmanager
def placed(network: nn.Module, device: str | torch.device | None) -> Iterator[torch.device]:
    """Move the network to the device, and back afterwards: the last of several threads does that."""
    with _LOCK:
        tensors = (*network.parameters(), *network.buffers())
        here = next((tensor.device for tensor in tensors if not tensor.is_meta), torch.device("cpu"))
        users, home = _PLACED.get(network, (0, here))
        there = here if device is None else torch.device(check_device(device))
        if users and there == torch.device(here.type):  # cuda stands for cuda:0, where it is
            there = here
        if there != here:
            if {tensor.device for tensor in tensors} - {here}:
                places = ", ".join(sorted({str(tensor.device) for tensor in tensors}))
                raise InputError(
                    f"this network is spread over several devices ({places}), and stays there; leave it out",
                    parameter="device",
                )
            if users:
                raise InputError(f"another thread measures this network on {here}", parameter="device")
            try:
                network.to(there)
            except Exception as error:
                network.to(here)
                if not is_out_of_memory(error):
                    raise
                raise OutOfMemoryError(
                    f"out of memory: the network does not fit on {device}; try cpu"
                ) from error
        _PLACED[network] = users + 1, home
    try:
        yield there
    finally:
        with _LOCK:
            users, home = _PLACED.pop(network)
            if users > 1:
                _PLACED[network] = users - 1, home
            elif there != home:
                network.to(home)


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Set eval mode, and restore every training flag afterwards: the last of several threads does that."""
    modules = list(network.modules())
    with _LOCK:
        for module in modules:
            users, training = _EVALUATING.get(module, (0, module.training))
            _EVALUATING[module] = users + 1, training
    try:
        with suppress(NotImplementedError):  # from torch.export, which fixed the mode
            network.eval()
        yield
    finally:
        with _LOCK:
            for module in modules:
                users, training = _EVALUATING.pop(module)
                if users > 1:
                    _EVALUATING[module] = users - 1, training
                else:
                    module.training = training
