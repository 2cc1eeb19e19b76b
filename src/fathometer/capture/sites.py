"""Say what counts as an activation, how a call of one is named, and which calls are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from types import FunctionType
from typing import Annotated, Any, Literal, TypeAlias, cast

import msgspec
import torch
from torch import Tensor, nn

from fathometer.errors import InputError, did_you_mean

OPERATORS = frozenset(
    "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid mish prelu relu relu6 "
    "rrelu selu sigmoid silu softplus softshrink softsign special_expit tanh tanhshrink threshold".split()
)
"""Functions of torch, `torch.nn.functional` and `Tensor` that are activations. Softmax is not: it mixes."""

RANGES: dict[str, tuple[float, float]] = {
    "hardsigmoid": (0.0, 1.0),
    "relu6": (0.0, 6.0),
    "sigmoid": (0.0, 1.0),
    "softsign": (-1.0, 1.0),
    "special_expit": (0.0, 1.0),
    "tanh": (-1.0, 1.0),
}
"""The ranges of operators that are bounded. That of `hardtanh` is an argument of each call, and not known."""

_COMPOSITE_HOMES = ("transformers.activations", "timm.layers.activations", "timm.layers.activations_me")
_MODULE_PREFIX = "module:"
_WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod"}
_SHARDED = {"FullyShardedDataParallel", "FSDPModule"}


Kind: TypeAlias = Literal["activation", "module", "mlp", "attention", "block"]
PARTS = frozenset({"mlp", "attention", "block"})
"""Words for parts of a transformer, which are found by its structure (`fathometer.capture.parts`)."""

_ACTIVATIONS = "activations"


class Site(msgspec.Struct, frozen=True):
    """One call in a forward pass, of an activation or of a module that was asked for.

    Attributes:
        module: path of the module that made the call; empty for the network itself.
        operator: what was called: `relu`, `gelu`, a composite such as `newgelu`, or a module's class.
        call: which call of this operator by this module it is, from 1.
        order: its index among all sites of the network, from 0.
        is_module: whether the call is the whole of the module, as in `nn.ReLU`, and not one function among
            others. In files it is called `own`.
        kind: `activation`, `module`, or a part of a transformer: `mlp`, `attention`, `block`.
        layer: number of the block that it belongs to, from 0; None if blocks were not searched for.
        residual: whether the pair has the residual sum: the stream before and after the part.
        after_sum: whether the input is a sum of two tensors, as the last ReLU in a block of a ResNet has it.
            Older files do not say it: False.
    """

    module: str
    operator: str
    call: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    order: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    is_module: bool = msgspec.field(name="own")
    kind: Kind | None = None
    layer: Annotated[int, msgspec.Meta(ge=0)] | None = None
    residual: bool = False
    after_sum: bool = False

    def __post_init__(self) -> None:
        if self.kind is None:  # in older files; names of classes have capitals
            is_module = self.is_module and not self.operator.islower()
            msgspec.structs.force_setattr(self, "kind", "module" if is_module else "activation")

    @property
    def name(self) -> str:
        """The module, and the number of the call from the second on: `layer1.0.relu#2`.

        `stem/relu` is a function that a module calls, `/relu` one in the network's own `forward`,
        `layers.0.mlp+residual` a part with its residual sum.
        """
        path = (self.module or self.operator) if self.is_module else f"{self.module}/{self.operator}"
        path = path if self.call == 1 else f"{path}#{self.call}"
        return f"{path}+residual" if self.residual else path

    def __str__(self) -> str:
        return self.name


SiteFilter: TypeAlias = "str | type[nn.Module] | Callable[[Site], bool]"
"""A pattern of names (`layer1.*`), an operator (`relu`), `activations` for every activation call, or a
predicate; `mlp`, `attention` or `block` for these parts of a transformer, unless it is the path of a module;
or, to measure whole modules, the path of one, `module:PATTERN` of paths or class names
(`module:encoder.*.mlp`, `module:LayerNorm`), or a class."""


@dataclass(frozen=True)
class SiteChoice:
    """Which calls are activations, and which of them are wanted.

    Attributes:
        tests: a site is wanted if one of them admits it.
        patterns: those of `tests` that come from a pattern; each must match a call.
        modules: whole modules to measure.
        parts: kinds of parts to search for: `mlp`, `attention`, `block`.
        composites: classes of activations that are made of several functions.
        functions: Python functions that are activations.
        operators: names of torch functions that are activations.
        named: names of the activations that the user has named.
    """

    tests: Sequence[Callable[[Site], bool]]
    patterns: Mapping[str, Callable[[Site], bool]]
    modules: frozenset[nn.Module]
    parts: frozenset[str]
    composites: tuple[type[nn.Module], ...]
    functions: tuple[FunctionType, ...]
    operators: frozenset[str]
    named: frozenset[str]

    def includes(self, site: Site) -> bool:
        """Tell whether a site is to be measured."""
        return any(test(site) for test in self.tests)

    def check_patterns(self, called: Sequence[Site]) -> None:
        """Refuse a pattern that matches none of the calls that were seen."""
        for pattern, test in self.patterns.items():
            if not any(test(site) for site in called):
                raise InputError(
                    f"no call matches {pattern!r}; {_advice(pattern, called)}", parameter="sites"
                )


def choose_sites(
    model: nn.Module,
    sites: SiteFilter | Iterable[SiteFilter] | None = None,
    activations: Sequence[type[nn.Module] | Callable[..., Any]] = (),
) -> SiteChoice:
    """Return what `sites` and `activations` ask for in this network."""
    paths = module_paths(model)
    modules: set[nn.Module] = set()
    tests: list[Callable[[Site], bool]] = []
    patterns: dict[str, Callable[[Site], bool]] = {}
    classes, functions, operators = [], [], set(OPERATORS)
    for activation in activations:
        if isinstance(activation, type) and issubclass(activation, nn.Module):
            classes.append(activation)
        elif isinstance(activation, FunctionType) and str(activation.__module__).split(".")[0] != "torch":
            functions.append(activation)
        elif callable(activation) and hasattr(activation, "__name__") and not isinstance(activation, type):
            operators.add(operator_name(activation))
        else:
            raise InputError(
                f"expected module classes or functions, got {activation!r}; "
                "pass the class itself, not an instance of it",
                parameter="activations",
            )
    known = {*operators, *(function.__name__ for function in functions), *map(composite_name, classes)}
    listed = _listed(sites)
    lists = nn.ModuleList, nn.ModuleDict
    called = {path for module, path in paths.items() if not isinstance(module, lists)}
    words = [str(item) for item in listed if item in (*PARTS, _ACTIVATIONS) and item not in called]
    for item in listed:
        if item in words:
            tests.append(partial(_is_of_kind, "activation" if item == _ACTIVATIONS else str(item)))
            continue
        found = _named_modules(item, paths)
        modules.update(m for m in found if not is_plain_activation(m) and not is_composite(m, classes))
        test = partial(_is_whole_module, frozenset(found.values())) if found else _test(item)
        tests.append(test)
        if isinstance(item, str) and not found and item not in known:
            patterns[item] = test
    if sites is None:
        tests.append(lambda _: True)
    return SiteChoice(
        tests,
        patterns,
        frozenset(modules),
        PARTS.intersection(words),
        tuple(classes),
        tuple(functions),
        frozenset(operators),
        frozenset(known - OPERATORS),
    )


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the network inside `torch.compile`, `DistributedDataParallel` and `DataParallel`.

    Scripted and sharded networks are refused: the calls inside them cannot be seen.
    """
    given: Any = model
    if not isinstance(given, nn.Module):
        hint = "; call it" if callable(given) else ""
        hint = "; fathometer.models.load_model loads by name" if isinstance(given, str) else hint
        raise InputError(f"expected a torch.nn.Module, got {type(given).__name__}{hint}", parameter="model")
    while inner := _WRAPPERS.get(type(model).__name__):
        model = getattr(model, inner)
    for path, module in model.named_modules():
        where = f"module {path!r}" if path else "the network"
        if isinstance(module, torch.jit.ScriptModule):
            raise InputError(
                f"{where} is a ScriptModule, whose calls cannot be seen; "
                "pass the network as it was before torch.jit",
                parameter="model",
            )
        if any(kind.__name__ in _SHARDED for kind in type(module).__mro__):
            raise InputError(
                f"{where} is sharded (FSDP), so that no process holds it; "
                "load the full state dict into the plain network and pass that",
                parameter="model",
            )
    return model


@cache
def operator_name(function: Callable[..., Any]) -> str:
    """Return `relu` for `torch.relu_`, `Tensor.relu` or `aten.relu.default`; `mT` for the property."""
    name: str = getattr(getattr(function, "overloadpacket", function), "__name__", "")
    if name == "__get__":
        name = getattr(getattr(function, "__self__", None), "__name__", name)
    return name if name.startswith("__") else name.strip("_")  # nn.Threshold calls `_threshold`


def function_of(operator: str) -> Callable[[Tensor], Tensor]:
    """Return torch's function for one of `OPERATORS` that needs one argument.

    Example:
        >>> function_of("special_expit")(torch.zeros(1))
        tensor([0.5000])
    """
    others = {"log_sigmoid": nn.functional.logsigmoid, "special_expit": torch.special.expit}
    found: Callable[[Tensor], Tensor] = (
        others.get(operator) or getattr(nn.functional, operator, None) or getattr(torch, operator)
    )
    return found


def module_paths(model: nn.Module) -> dict[nn.Module, str]:
    """Return the path of every module, without what wrappers add; a shared module has its first name."""
    return {
        module: ".".join(part for part in path.split(".") if part != "_orig_mod")
        for path, module in model.named_modules()
    }


def is_plain_activation(module: nn.Module) -> bool:
    """Tell whether calling the module is calling one of torch's activations, and nothing else."""
    home = getattr(type(module).forward, "__module__", "")
    return home == "torch.nn.modules.activation" and not isinstance(module, nn.MultiheadAttention)


def is_composite(module: nn.Module, classes: Sequence[type[nn.Module]] = ()) -> bool:
    """Tell whether the module is an activation that is made of several functions, and counts once."""
    return type(module).__module__ in _COMPOSITE_HOMES or isinstance(module, tuple(classes))


def composite_name(kind: type[nn.Module]) -> str:
    """Return `newgelu` for `NewGELUActivation`."""
    return kind.__name__.removesuffix("Activation").lower()


def _listed(sites: SiteFilter | Iterable[SiteFilter] | None) -> list[SiteFilter]:
    if sites is None:
        return []
    several = isinstance(sites, Iterable) and not isinstance(sites, str | type)
    listed = list(cast("Iterable[SiteFilter]", sites)) if several else [cast("SiteFilter", sites)]
    for item in listed:
        is_module = isinstance(item, nn.Module)
        if is_module or not (isinstance(item, str) or callable(item)):
            hint = "; give the path of the module" if is_module else ""
            raise InputError(
                "expected patterns, operators, module classes or functions of a Site, "
                f"got {type(item).__name__}{hint}",
                parameter="sites",
            )
    if not listed:
        raise InputError(
            "expected at least one pattern, got none; leave it out to measure all", parameter="sites"
        )
    return listed


def _named_modules(item: SiteFilter, paths: dict[nn.Module, str]) -> dict[nn.Module, str]:
    """Return the modules that the item asks for as wholes; none if it is about activation calls."""
    if isinstance(item, type):
        found = {module: path for module, path in paths.items() if isinstance(module, item)}
    elif isinstance(item, str) and item.startswith(_MODULE_PREFIX):
        pattern = item.removeprefix(_MODULE_PREFIX)
        found = {
            module: path
            for module, path in paths.items()
            if fnmatchcase(path, pattern) or type(module).__name__ == pattern
        }
    else:
        return {
            module: path for module, path in paths.items() if path and path == item and path not in OPERATORS
        }
    if not found:
        raise InputError(
            f"no module of the network is {item!r}; `print(model)` shows their names", parameter="sites"
        )
    return found


def _advice(pattern: str, called: Sequence[Site]) -> str:
    """Name calls that a mistyped pattern may mean, or some that there are."""
    names = [site.name for site in called]
    starts = {name[:end] for name in names for end, letter in enumerate(name) if letter in "./#"}
    words = (*sorted(PARTS), _ACTIVATIONS)
    known = dict.fromkeys((*names, *(site.operator for site in called), *starts - {""}, *words))
    hint = did_you_mean(pattern.strip("*?./#"), known)
    return hint or f"the activation calls seen are: {', '.join(names[:8]) or 'none'}"


def _is_of_kind(kind: str, site: Site) -> bool:
    return site.kind == kind


def _is_whole_module(paths: frozenset[str], site: Site) -> bool:
    return site.is_module and site.module in paths


def _test(item: SiteFilter) -> Callable[[Site], bool]:
    if isinstance(item, str):
        return lambda site: site.operator == item or fnmatchcase(site.name, item)
    predicate = cast("Callable[[Site], bool]", item)

    def test(site: Site) -> bool:
        try:
            return bool(predicate(site))
        except Exception as error:  # the user's code
            raise InputError(f"the predicate failed on {site} ({error!r})", parameter="sites") from error

    return test
