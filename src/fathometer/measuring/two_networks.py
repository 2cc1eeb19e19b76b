"""Two networks on the same samples: the similarity of every site of one with every site of the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import msgspec
import pandas as pd
import torch
from torch import Tensor, nn

from fathometer.capture import Site
from fathometer.capture.axes import tensors_in
from fathometer.errors import InputError
from fathometer.measuring.batches import as_tensors, batches_of, run, unfit_labels, with_labels
from fathometer.measuring.identity import describe_data, describe_network, hash_contents
from fathometer.measuring.loop import Progress
from fathometer.measuring.measure import measure_by_label
from fathometer.measuring.options import Call, MeasureOptions, with_changes
from fathometer.measuring.scores import Scorer, outcome
from fathometer.models import LoadedModel
from fathometer.models.language import ids_of
from fathometer.results.similarity import SimilarityMap, different_names


def similarity_map(
    first: nn.Module | LoadedModel,
    second: nn.Module | LoadedModel,
    data: Any,
    options: MeasureOptions | None = None,
    *,
    second_data: Any = None,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    progress: bool | Progress = False,
    **changes: Any,
) -> SimilarityMap:
    """Compare every site of one network with every site of another on the same samples, by CKA.

    Both networks run side by side, once over the data, so that no more than a batch of either is kept. The
    similarity is that of `measure(..., map="cka")`, which compares the sites of one network.

    Args:
        first: any `nn.Module`, or the result of `fathometer.models.load_model`.
        second: another one.
        data: as for `measure`; both networks get the same input.
        options: as for `measure`; usually given by name. Patterns of `sites` see names that begin with
            `first.` and `second.`; there are no `gauges`.
        second_data: the same samples in the same order as the second network takes them, if it needs another
            preprocessing.
        batch_size: as for `measure`, like all that follow.
        device: where to run.
        progress: True for a bar, or a function of (samples done, total or None).
        changes: options by name, `samples=128`.

    Example:
        >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
        <...>
        >>> one = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        >>> other = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
        >>> similarity_map(one, other, torch.randn(512, 4)).values.shape
        (1, 2)
    """
    for option in ("gauges", "map"):
        if option in changes:
            raise InputError("has no effect here; use measure", parameter=option)
    options = with_changes(options, changes, caller="similarity_map")
    (one, facts_one), (other, facts_other) = (describe_network(model, None) for model in (first, second))
    data, second_data = with_labels(data), with_labels(second_data)
    scorers = Scorer(first, data), Scorer(second, data if second_data is None else second_data)
    both = _Both(one, other, options.call, scorers)
    (sum_one, contents), (sum_other, _) = hash_contents(one, data)(), hash_contents(other, ())()
    sounding = measure_by_label(
        both,
        _SameSamples(data, second_data, batch_size, options.seed),
        replace(options, map="cka", call=None),
        lambda pairs: [{} for _ in pairs],
        batch_size=batch_size,
        device=device,
        progress=progress,
    )[""]
    settings = {**sounding.provenance.settings, **options.describe(), "map": "cka"}
    del settings["gauges"]
    measured = sounding.provenance.data["samples_measured"]
    provenance = replace(
        sounding.provenance,
        model={
            "name": " and ".join(different_names(facts_one, facts_other)),
            "first": {**facts_one, "checksum": sum_one, **_outcome(scorers[0], measured)},
            "second": {**facts_other, "checksum": sum_other, **_outcome(scorers[1], measured)},
        },
        data={**sounding.provenance.data, **contents},
        settings=settings,
    )
    assert sounding.map is not None
    rows, columns = (_sites_of(side, sounding.sites) for side in ("first", "second"))
    values = sounding.map.loc[list(rows), list(columns)].to_numpy()
    names = [[site.name for site in side.values()] for side in (rows, columns)]
    frame = pd.DataFrame(values, index=names[0], columns=names[1])
    return SimilarityMap(tuple(rows.values()), tuple(columns.values()), frame, provenance)


def _outcome(scorer: Scorer, samples: int) -> dict[str, Any]:
    """Return accuracy and loss of a network over the samples that were measured, where they have labels."""
    scores = scorer.take(samples)()
    return outcome([scores], samples, scorer.label_problem([] if scores is None else [scores]))


def _sites_of(side: str, sites: Sequence[Site]) -> dict[str, Site]:
    """Return the sites of one network as they are called in it, by their names in both together."""
    found = {site.name: site for site in sites if site.module.partition(".")[0] == side}
    if not found:
        raise InputError(f"the {side} network has no site to compare; choose by `sites`")
    return {
        name: msgspec.structs.replace(site, module=site.module.partition(".")[2])
        for name, site in found.items()
    }


class _Both(nn.Module):
    """Two networks as one, each with its own input."""

    def __init__(
        self, first: nn.Module, second: nn.Module, call: Call | None, scorers: tuple[Scorer, Scorer]
    ) -> None:
        super().__init__()
        if set(first.modules()) & set(second.modules()):
            raise InputError("the networks share modules; give copies of them (copy.deepcopy)")
        places = [next((p.device for p in network.parameters()), None) for network in (first, second)]
        if None not in places and places[0] != places[1]:
            raise InputError(f"the networks are on {places[0]} and {places[1]}; move one of them")
        weights = [*first.parameters(), *second.parameters()]
        kinds = [weight.dtype for weight in weights if weight.is_floating_point()]
        if kinds:  # the input is converted to the dtype of the first parameter, and then for each network
            widest = max(kinds, key=lambda kind: torch.finfo(kind).bits)
            self.widest = nn.Parameter(torch.empty(0, dtype=widest, device=places[0] or places[1]), False)
        self.first, self.second, self._call, self._scorers = first, second, call, scorers

    def forward(
        self, first: Any, second: Any, unfit: tuple[str, str], attention_mask: Tensor | None = None
    ) -> None:
        """Run each network; the mask is that of both, seen here by the watch.

        `unfit` says for each why its labels cannot be used, if so.
        """
        del attention_mask
        outputs = []
        for network, value in ((self.first, first), (self.second, second)):
            place = next((p.device for p in network.parameters()), torch.device("cpu"))
            outputs.append(run(network, value, place, self._call))
        for scorer, *labelled in zip(self._scorers, outputs, (first, second), unfit, strict=True):
            scorer.add(*labelled)


class _SameSamples:
    """Batches of two data sets that have the same samples in the same order."""

    def __init__(self, first: Any, second: Any, batch_size: int | None, seed: int) -> None:
        self.description = describe_data(first, None)
        self._data, self._cut = (first, second), (batch_size, seed)

    def __len__(self) -> int:
        return int(self.description.get("count"))  # type: ignore[arg-type]  # TypeError: it is not known

    @property
    def skipped(self) -> list[str]:
        """Names of samples that could not be read."""
        return list(getattr(self._data[0], "skipped", ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        first, second = self._data
        items: Iterable[tuple[Any, Any]]
        if second is None:
            items = ((item, item) for item in batches_of(first, *self._cut))
        else:
            items = zip_longest(batches_of(first, *self._cut), batches_of(second, *self._cut))
        for item in items:
            one, other = map(as_tensors, item)
            counts = [len(next(tensors_in(value), ())) for value in (one, other)]
            if counts[0] != counts[1]:
                raise InputError(
                    f"expected the same samples twice, got batches of {counts[0]} and {counts[1]}",
                    parameter="second_data",
                )
            masks = [v.get("attention_mask") if isinstance(v, Mapping) else None for v in (one, other)]
            given = [mask for mask in masks if mask is not None]
            read = zip(map(ids_of, (one, other)), masks, strict=True)
            ids = [each if mask is None else each * mask for each, mask in read if each is not None]
            if len(given) == 1 or any(len(each) == 2 and not torch.equal(*each) for each in (given, ids)):
                raise InputError(
                    "expected the same tokens for both networks, got others for the second; compare networks "
                    "that share a tokenizer",
                    parameter="data",
                )
            unfit = unfit_labels(one), unfit_labels(other)  # of the whole batch, which may be cut
            yield {"first": one, "second": other, "unfit": unfit, "attention_mask": masks[0]}
