"""What counts as an activation, what a call of one is called, and which calls are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, partial
from types import FunctionType
from typing import Any, TypeAlias, cast

from torch import nn

from fathometer.errors import InputError

OPERATORS = frozenset(
    "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid mish prelu relu relu6 "
    "rrelu selu sigmoid silu softplus softshrink softsign special_expit tanh tanhshrink threshold".split()
)
"""Functions of torch, `torch.nn.functional` and `Tensor` that are activations; softmax is none: it mixes."""

_COMPOSITE_HOMES = ("transformers.activations", "timm.layers.activations", "timm.layers.activations_me")
_MODULE_PREFIX = "module:"


@dataclass(frozen=True)
class Site:
    """One call in a forward pass, of an activation or of a module that was asked for.

    Attributes:
        module: path of the module that made the call; empty for the network itself.
        operator: what was called: `relu`, `gelu`, a composite such as `newgelu`, or a module's class.
        call: which call of this operator by this module it is, from 1.
        order: its place among all sites of the network, from 0.
        own: whether the call is the whole of the module, as in `nn.ReLU`, and not one function among others.
    """

    module: str
    operator: str
    call: int
    order: int
    own: bool

    @property
    def name(self) -> str:
        """`layer1.0.relu#2`: the module, and the call from the second on; `stem/relu` for a function.

        `/relu` is a function within the network's own `forward`.
        """
        path = (self.module or self.operator) if self.own else f"{self.module}/{self.operator}"
        return path if self.call == 1 else f"{path}#{self.call}"

    def __str__(self) -> str:
        return self.name


SiteFilter: TypeAlias = "str | type[nn.Module] | Callable[[Site], bool]"
"""A pattern of names (`layer1.*`), an operator (`relu`), a predicate; or, to measure whole modules, the path
of one, `module:PATTERN` of paths or class names (`module:encoder.*.mlp`, `module:LayerNorm`), or a class."""


@dataclass(frozen=True)
class Choice:
    """Which calls become sites."""

    wanted: Callable[[Site], bool]
    modules: dict[nn.Module, str] = field(default_factory=dict)  # whole modules to measure, and their paths
    composites: tuple[type[nn.Module], ...] = ()
    functions: tuple[FunctionType, ...] = ()
    operators: frozenset[str] = OPERATORS


def choose(
    model: nn.Module,
    sites: SiteFilter | Iterable[SiteFilter] | None = None,
    activations: Sequence[type[nn.Module] | Callable[..., Any]] = (),
) -> Choice:
    """What `sites` and `activations` ask for in this network."""
    paths = module_paths(model)
    modules: dict[nn.Module, str] = {}
    tests: list[Callable[[Site], bool]] = []
    classes, functions, operators = [], [], set(OPERATORS)
    for activation in activations:
        if isinstance(activation, type) and issubclass(activation, nn.Module):
            classes.append(activation)
        elif isinstance(activation, FunctionType) and not _is_torchs(activation):
            functions.append(activation)
        elif callable(activation) and hasattr(activation, "__name__") and not isinstance(activation, type):
            operators.add(operator_name(activation))
        else:
            raise InputError(
                f"activations: expected module classes or functions, got {activation!r}; "
                "pass the class itself, not an instance of it"
            )
    for item in _listed(sites):
        found = _named_modules(item, paths)
        wholes = {m: path for m, path in found.items() if not is_activation(m, classes)}
        modules.update(wholes)
        tests.append(partial(_is_of, frozenset(found.values())) if found else _test(item))
    if sites is None:
        tests.append(lambda _: True)
    return Choice(
        lambda site: any(test(site) for test in tests),
        modules,
        tuple(classes),
        tuple(functions),
        frozenset(operators),
    )


@cache
def operator_name(function: Callable[..., Any]) -> str:
    """`relu` for `torch.relu_`, `Tensor.relu`, `F.relu`, `aten.relu.default`; `mT` for that property."""
    name: str = getattr(getattr(function, "overloadpacket", function), "__name__", "")
    if name == "__get__":
        name = getattr(getattr(function, "__self__", None), "__name__", name)
    return name if name.startswith("__") else name.strip("_")  # nn.Threshold calls `_threshold`


def module_paths(model: nn.Module) -> dict[nn.Module, str]:
    """The path of every module, without what wrappers add; a shared module goes by its first name."""
    return {
        module: ".".join(part for part in path.split(".") if part != "_orig_mod")
        for path, module in model.named_modules()
    }


def is_plain_activation(module: nn.Module) -> bool:
    """Whether calling the module is calling one of torch's activations, and nothing else."""
    return (
        getattr(type(module).forward, "__module__", "") == "torch.nn.modules.activation"
        and not isinstance(module, nn.MultiheadAttention)
    )  # fmt: skip


def is_composite(module: nn.Module, classes: Sequence[type[nn.Module]] = ()) -> bool:
    """Whether the module is an activation that is made of several functions, and counts once."""
    return type(module).__module__ in _COMPOSITE_HOMES or isinstance(module, tuple(classes))


def is_activation(module: nn.Module, classes: Sequence[type[nn.Module]] = ()) -> bool:
    """Whether the module is an activation as a whole."""
    return is_plain_activation(module) or is_composite(module, classes)


def composite_name(module: nn.Module) -> str:
    """`newgelu` for `NewGELUActivation`."""
    return type(module).__name__.removesuffix("Activation").lower()


def _listed(sites: SiteFilter | Iterable[SiteFilter] | None) -> list[SiteFilter]:
    if sites is None:
        return []
    several = isinstance(sites, Iterable) and not isinstance(sites, str | type)
    listed = list(cast("Iterable[SiteFilter]", sites)) if several else [cast("SiteFilter", sites)]
    for item in listed:
        if not isinstance(item, str) and not callable(item):
            raise InputError(
                "sites: expected patterns, operators, module classes or functions of a Site, "
                f"got {type(item).__name__}"
            )
    if not listed:
        raise InputError("sites: expected at least one pattern, got none; leave it out to measure all")
    return listed


def _named_modules(item: SiteFilter, paths: dict[nn.Module, str]) -> dict[nn.Module, str]:
    """The modules that the item asks for as wholes; none if it is about activation calls."""
    if isinstance(item, type):
        found = {module: path for module, path in paths.items() if isinstance(module, item)}
    elif isinstance(item, str) and item.startswith(_MODULE_PREFIX):
        pattern = item.removeprefix(_MODULE_PREFIX)
        found = {
            module: path
            for module, path in paths.items()
            if fnmatchcase(path, pattern) or type(module).__name__ == pattern
        }
    elif isinstance(item, str) and item and item not in OPERATORS:
        return {module: path for module, path in paths.items() if path == item}
    else:
        return {}
    if not found:
        raise InputError(f"sites: no module of the network is {item!r}; `print(model)` shows their names")
    return found


def _is_torchs(function: FunctionType) -> bool:
    return (function.__module__ or "").partition(".")[0] == "torch"


def _is_of(paths: frozenset[str], site: Site) -> bool:
    return site.own and site.module in paths


def _test(item: SiteFilter) -> Callable[[Site], bool]:
    if isinstance(item, str):
        return lambda site: site.operator == item or fnmatchcase(site.name, item)
    predicate = cast("Callable[[Site], bool]", item)

    def test(site: Site) -> bool:
        try:
            return bool(predicate(site))
        except Exception as error:  # the code of others
            raise InputError(f"sites: the predicate failed on {site} ({error!r})") from error

    return test
