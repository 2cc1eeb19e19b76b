"""The options of a measurement, in one place: what decides the values, with defaults, limits and help.

`measure`, the training probe and the residual path hold a `MeasureOptions`; the command line and survey
plans derive their flags and settings from `plain_options()`. Nothing heavy is imported here, so that
`fathometer --help` stays quick.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from fathometer.errors import InputError, check_choice, check_whole, did_you_mean

if TYPE_CHECKING:
    from torch import nn

    from fathometer.capture import Reduction, Residual, SiteFilter
    from fathometer.gauges.gauge import Gauge
    from fathometer.gauges.registry import GaugeChoice

Leftover: TypeAlias = Literal["drop", "keep"]
Preset: TypeAlias = Literal["language", "none"]
Call: TypeAlias = "Callable[[nn.Module, Any], object]"
"""Runs the network on one item of the data."""


PRESETS: dict[str, dict[str, Any]] = {
    "language": {
        "samples": 2048,
        "batches": 2,
        "gauges": ("language",),
        "sites": ("activations", "mlp", "attention", "block"),
        "residual": "both",
        "reduction": "tokens",
    },
    "none": {},
}
"""Options that are usual for a kind of network, by name. Those that are given by themselves win."""


class Option(NamedTuple):
    """An option that text and numbers can express, for the command line and for plans.

    Attributes:
        name: as in Python.
        kind: `int`, `str` or `bool`; None if only Python code can express its values.
        default: its value if it is left out.
        help: one sentence.
        many: whether it takes several values, as a tuple.
        choices: the words that are allowed; empty if any is.
        minimum: the smallest number that is allowed.
    """

    name: str
    kind: type | None
    default: Any
    help: str
    many: bool = False
    choices: tuple[str, ...] = ()
    minimum: int | None = None

    def check(self, value: Any) -> Any:
        """Return a value that the option allows, several texts as a tuple; refuse any other."""
        if value is None and self.default is None:
            return () if self.many else None
        if self.many:
            texts = [value] if isinstance(value, str) else value
            if isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts):
                return tuple(texts)
            raise InputError(f"expected text, or a list of texts, got {value!r}", parameter=self.name)
        if self.choices:
            check_choice(self.name, value, self.choices)
        if self.kind is int:
            return check_whole(self.name, value, self.minimum or 0)
        if self.kind is bool and not isinstance(value, bool):
            raise InputError(f"expected true or false, got {value!r}", parameter=self.name)
        return value


def option(
    default: Any,
    help: str,
    kind: type | None = None,
    *,
    many: bool = False,
    choices: tuple[str, ...] = (),
    minimum: int | None = None,
) -> Any:
    """Return a dataclass field with its help; without a `kind` only Python code can express its values."""
    limits = {"many": many, "choices": choices, "minimum": minimum}
    return field(default=default, metadata={"help": help, "kind": kind, **limits})


def options_of(kind: type) -> dict[str, Option]:
    """Return the options of a dataclass that text and numbers can express, by name."""
    every = map(_option, fields(kind))
    return {each.name: each for each in every if each.kind is not None}


def _option(field: Field[Any]) -> Option:
    return Option(field.name, default=field.default, **field.metadata)


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """What decides the values of a sounding, apart from the network and the data.

    Every field is a parameter of `measure`. One name or function stands for a list of one.

    Example:
        >>> options = MeasureOptions(samples=128, gauges="affinity,cka")
        >>> options.gauges, options.reduction.pooling
        (('affinity', 'cka'), 'mean')
    """

    samples: int = option(512, "Number of samples in each measured batch.", int, minimum=2)
    batches: int | None = option(
        None, "Number of batches to measure. Default: as many as the data fill.", int, minimum=1
    )
    gauges: GaugeChoice | Iterable[GaugeChoice] = option(
        ("standard",),
        "Gauges to compute: standard (all but affinity_sample, cka, r2_trimmed, scale and duplicates), "
        "language, check, all, names such as affinity or stable_rank, and functions of your own.",
        str,
        many=True,
    )
    sites: SiteFilter | Iterable[SiteFilter] | None = option(
        None,
        "Only these sites: a pattern of names (layer1.*), an operator (relu), activations (every activation "
        "call), mlp, attention or block (in transformers, found by structure), or whole modules "
        "(module:NAME); with commas. Default: activations.",
        str,
        many=True,
    )
    residual: Residual = option(
        "without",
        "Whether mlp, attention and block are measured with the residual sum, without it, or both ways.",
        str,
        choices=("without", "with", "both"),
    )
    activations: Sequence[type[nn.Module] | Callable[..., Any]] = option(
        (), "Classes and functions of your own that are activations.", str, many=True
    )
    reduction: Reduction = option(
        "mean",
        "How positions (pixels, tokens) become samples and features.",
        str,
        choices=("mean", "sum", "flatten", "position", "tokens", "authors"),
    )
    leftover: Leftover = option(
        "drop",
        "Whether to drop the samples that do not fill a batch, or to keep them as a smaller batch.",
        str,
        choices=("drop", "keep"),
    )
    seed: int = option(0, "Seed for the order of the data and for random positions.", int, minimum=0)
    map: Literal["cka"] | None = option(
        None, "Also compute the similarity of every site with every other (cka).", str, choices=("cka",)
    )
    call: Call | None = option(
        None,
        "How to run the network on an item of the data, where the usual ways fail: a function of (model, "
        "item).",
        str,
    )

    def __post_init__(self) -> None:
        from fathometer.capture import Reduction
        from fathometer.gauges.similarity import MIN_SAMPLES

        changed: dict[str, Any] = {
            "gauges": tuple(_split_names(self.gauges)),
            "sites": None if self.sites is None else tuple(_split_names(self.sites)),
            "activations": tuple(listed(self.activations)),
        }
        for each in fields(self):
            if each.name in ("samples", "batches", "seed", "leftover", "residual", "map"):
                changed[each.name] = _option(each).check(getattr(self, each.name))
        given: Any = self.reduction
        if not isinstance(given, Reduction):
            changed["reduction"] = Reduction(given, seed=changed["seed"])
        for name, value in changed.items():
            object.__setattr__(self, name, value)
        if self.call is not None and not callable(self.call):
            raise InputError(
                f"expected a function of (model, item), got {type(self.call).__name__}", parameter="call"
            )
        if self.reduction.sample_axis != 0 and self.call is None:
            raise InputError(
                "data are cut along the first axis; give `call` to turn them for the network",
                parameter="sample_axis",
            )
        if self.map and self.samples < MIN_SAMPLES:
            raise InputError(
                f"expected at least {MIN_SAMPLES} for a map, got {self.samples}", parameter="samples"
            )
        _ = self.chosen_gauges  # refuses unknown names before a network runs

    @cached_property
    def chosen_gauges(self) -> dict[str, Gauge]:
        """The gauges by name; `standard` and `all` stand for several."""
        from fathometer.gauges.registry import choose_gauges

        return choose_gauges(self.gauges)

    def gauges_at(self, kind: str | None) -> dict[str, Gauge]:
        """Return the gauges for a kind of site: of the set `language`, those that say something about it."""
        from fathometer.gauges.registry import UNFIT_FOR_KIND

        names = set(filter(lambda name: isinstance(name, str), listed(self.gauges)))
        unfit = UNFIT_FOR_KIND.get(kind or "", UNFIT_FOR_KIND["block"])
        left_out = unfit - names if "language" in names else frozenset()
        return {name: gauge for name, gauge in self.chosen_gauges.items() if name not in left_out}

    @property
    def counts_tokens(self) -> bool:
        """Whether every token is a sample."""
        return self.reduction.pooling == "tokens"

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> MeasureOptions:
        """Make options from text and numbers, as the command line and plans have them (`plain_options`).

        Gauges, activations and a call of your own are `package.module:name`; `preset` is one of `PRESETS`.

        Example:
            >>> MeasureOptions.from_plain({"reduction": "tokens", "pool_first": True}).reduction.pool_first
            True
        """
        from fathometer.capture import Reduction
        from fathometer.models.user_code import import_by_name

        given = with_preset(values)
        parts = {name: given.pop(name) for name in _REDUCTION_PARTS if name in given}
        seed = given.get("seed", 0)
        for name in ("gauges", "activations"):
            if name in given:
                given[name] = [
                    import_by_name(each, name)
                    if isinstance(each, str) and (":" in each or name == "activations")
                    else each
                    for each in _split_names(given[name])
                ]
        if isinstance(given.get("call"), str):
            given["call"] = import_by_name(given["call"], "call")
        given["reduction"] = Reduction(given.get("reduction", "mean"), seed=seed, **parts)
        given["sites"] = given.get("sites") or None  # in text, nothing stands for all
        return with_changes(None, given)

    def describe(self) -> dict[str, Any]:
        """Return all options as plain values, as the provenance of a sounding has them.

        `code` has a hash of every function and class of the user's own.
        """
        from fathometer.capture.sites import PARTS

        found = {
            "samples": self.samples,
            "gauges": list(self.chosen_gauges),
            "sites": None if self.sites is None else [readable_name(site) for site in listed(self.sites)],
            "activations": [readable_name(activation) for activation in self.activations],
            "reduction": asdict(self.reduction),
            "leftover": self.leftover,
            "seed": self.seed,
            "batches": self.batches,
        }
        if any(isinstance(site, str) and site in PARTS for site in listed(self.sites)):
            found["residual"] = self.residual
        if "language" in listed(self.gauges):
            found["gauges_by_kind"] = "language 2"  # which reads its gauges at some kinds of sites only
        if self.map is not None:
            found["map"] = self.map
        if self.call is not None:
            found["call"] = readable_name(self.call)
        if code := self._code():
            found["code"] = code
        return found

    def fingerprint(self) -> str:
        """Return the SHA-256 of everything that decides the values, the code of the user's functions too."""
        return hashlib.sha256(json.dumps(self.describe(), sort_keys=True).encode()).hexdigest()

    def _code(self) -> dict[str, str]:
        from fathometer.gauges.registry import GAUGES
        from fathometer.measuring.identity import code_hash

        own: list[tuple[str, Callable[..., Any]]] = [
            (f"gauge {name}", gauge.function)
            for name, gauge in self.chosen_gauges.items()
            if name not in GAUGES
        ]
        for index, site in enumerate(() if self.sites is None else listed(self.sites)):
            own += [(f"site {index} {readable_name(site)}", site)] if callable(site) else []
        own += [(f"activation {readable_name(activation)}", activation) for activation in self.activations]
        own += [] if self.call is None else [("call", self.call)]
        return {name: code_hash(function) for name, function in own}


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """What decides the values where a network and data are given by name, apart from these names."""

    dtype: str | None = option(
        None,
        "Precision of the network. Default: as it is stored.",
        str,
        choices=("float32", "float64", "bfloat16", "float16"),
    )
    length: int | None = option(None, "Number of tokens in a block of text.", int, minimum=2)
    shuffle: bool = option(True, "Take the data in random order, since folders are sorted by class.", bool)
    strict: bool = option(False, "Stop at an unreadable image instead of skipping it.", bool)


_REDUCTION_PARTS = {
    "pool_first": Option(
        "pool_first", bool, False, "Pool before the activation (Definition 3.1) instead of after it."
    ),
    "channel_axis": Option(
        "channel_axis", int, None, "Axis of the channels. Default: derived from the operators.", minimum=-8
    ),
}


def with_preset(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by name, with those of their `preset` where they are not given; it is left out then.

    Example:
        >>> with_preset({"preset": "language", "samples": 64, "seed": 1})["samples"]
        64
    """
    given = dict(values)
    preset = given.pop("preset", None)
    preset = "none" if preset is None else preset
    check_choice("preset", preset, PRESETS)
    return {**PRESETS[preset], **given}


def with_changes(
    options: MeasureOptions | None, changes: Mapping[str, Any], caller: str = "measure"
) -> MeasureOptions:
    """Return the options with some of them changed by name; unknown names are refused with a suggestion.

    A `preset` among the changes stands for those of its options that are not changed by name.
    """
    if options is not None and changes.get("preset") is not None:
        raise InputError("cannot be combined with `options`; give single options by name", parameter="preset")
    changes = with_preset(changes)
    known = [*(each.name for each in fields(MeasureOptions)), "preset"]
    if unknown := [name for name in changes if name not in known]:
        hint = did_you_mean(unknown[0], known) or f"the options are {', '.join(known)}"
        raise TypeError(f"{caller}() got an unexpected keyword argument {unknown[0]!r}; {hint}")
    if options is None:
        return MeasureOptions(**changes)
    if not isinstance(options, MeasureOptions):
        raise InputError(
            f"expected MeasureOptions, got {options!r}; give single options by name, samples=128",
            parameter="options",
        )
    changed = replace(options, **changes)
    if (
        "seed" in changes and "reduction" not in changes and options.reduction.seed == options.seed
    ):  # one seed for both
        changed = replace(changed, reduction=replace(options.reduction, seed=changed.seed))
    return changed


def plain_options() -> dict[str, Option]:
    """Return the options of `MeasureOptions.from_plain`, by name, in the order to show them.

    Example:
        >>> plain_options()["samples"].default, plain_options()["leftover"].choices
        (512, ('drop', 'keep'))
    """
    found: dict[str, Option] = {}
    for name, each in options_of(MeasureOptions).items():
        found[name] = each
        if name == "reduction":
            found |= _REDUCTION_PARTS
    return found


def _split_names(choice: Any) -> list[Any]:
    """Return a list of gauges or sites; names may be in one text, with commas."""
    found: list[Any] = []
    for each in listed(choice):
        found += [name.strip() for name in each.split(",")] if isinstance(each, str) else [each]
    return found


def listed(choice: Any) -> list[Any]:
    """Return one choice, or several, as a list."""
    return list(choice) if isinstance(choice, Iterable) and not isinstance(choice, str | type) else [choice]


def readable_name(choice: Any) -> str:
    """Return a name as it is, and that of a function or class."""
    return choice if isinstance(choice, str) else getattr(choice, "__qualname__", type(choice).__qualname__)
