"""The networks that were measured, with what is known of them; and claims that only some networks decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pandas as pd

from fathometer import Sounding
from fathometer.compare import known_facts, statistics
from fathometer.report import note_below, print_style
from papers.affinity.network_figures import plot_raw
from papers.affinity.zoo import SMALL, network_soundings
from papers.item import Answer, Item, RunContext, Seconds
from papers.roles import kinds_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EARLY = ("AlexNet", "VGG")
LATER = ("Inception", "ResNet", "DenseNet", "MNASNet", "EfficientNet")
PRIORS = ("Swin", "ConvNeXt")
"""Families of the paper: early convnets, those after them until ViT, and those that learnt from ViT."""

REPRESENTATIVES = (
    "alexnet",
    "vgg16",
    "inception_v3",
    "resnet152",
    "densenet161",
    "efficientnet_b4",
    "vit_l_16",
    "swin_b",
    "convnext_base",
)
"""Nine networks for nine kinds, as in Figure 5 (B); the paper does not name its own."""


def has_random_weights(sounding: Sounding) -> bool:
    """Say whether the weights are random."""
    return sounding.provenance.model.get("weights") == "none"


def keep_figure(context: RunContext, census: Census, figure: Figure) -> None:
    """Write the figure of an item; a note says if the weights are random."""
    if len(census.trained.soundings) < len(census.soundings):
        with print_style():
            note_below(figure, [*filter(None, [figure.get_supxlabel()]), "random weights, noise"])
    context.figure(figure)


@dataclass(frozen=True)
class Census:
    """The measured networks, and what is known about them."""

    soundings: dict[str, Sounding]  # by name
    # network × family, accuracy, depth, parameters, gflops, year, as far as they are known
    facts: pd.DataFrame

    @classmethod
    def of(cls, soundings: dict[str, Sounding]) -> Census:
        """Collect what the soundings and torchvision say."""
        return cls(soundings, known_facts(soundings) if soundings else pd.DataFrame())

    @cached_property
    def families(self) -> dict[str, str]:
        """Network → family, if it has one."""
        known = self.facts["family"].dropna() if "family" in self.facts else pd.Series(dtype=object)
        return {str(name): str(family) for name, family in known.items() if family}

    @cached_property
    def statistics(self) -> pd.DataFrame:
        """Statistics of the signatures: network × min, max, median, spread, skewness, dip, p."""
        return statistics(self.soundings)

    @cached_property
    def trained(self) -> Census:
        """The networks whose weights are not random."""
        return self.only(
            name for name, sounding in self.soundings.items() if not has_random_weights(sounding)
        )

    def by_architecture(self, numbers: pd.DataFrame) -> pd.DataFrame:
        """Average over the networks of each family and year, which are variations of one; by year.

        `numbers` has a row for each network; those of no known year are left out.
        """
        known = self.facts.reindex(columns=["family", "year"]).join(numbers, how="inner")
        known = known[known["year"].notna()]
        names = known["family"].fillna("") + " " + known["year"].astype(int).astype(str)
        means = known[["year", *numbers.columns]].astype(float).groupby(names.to_numpy(), sort=False).mean()
        return means.sort_values("year").rename_axis("architecture")

    def members(self, *families: str) -> list[str]:
        """Return the networks of some families; upper and lower case do not matter."""
        wanted = {family.casefold() for family in families}
        return [name for name in self.soundings if self.families.get(name, "").casefold() in wanted]

    def only(self, names: Iterable[str]) -> Census:
        """Keep some of the networks."""
        kept = {name: self.soundings[name] for name in names}
        return Census(kept, self.facts.loc[[name for name in kept if name in self.facts.index]])

    def representatives(self) -> list[str]:
        """Choose the nine; if some are missing, one of each family: the last, or one of the nine."""
        nine = [name for name in REPRESENTATIVES if name in self.soundings]
        if len(nine) == len(REPRESENTATIVES):
            return nine
        kinds = {self.families.get(name, name): name for name in self.soundings}
        return list((kinds | {self.families.get(name, name): name for name in nine}).values())

    def __len__(self) -> int:
        return len(self.soundings)


def keep_signatures(context: RunContext, census: Census, shown: list[str]) -> None:
    """Write the signatures with their standard deviations, as a table and a figure."""
    table = context.table("signatures", site_rows(census, shown))
    noise = table.groupby("network", sort=False)["std"].mean()
    context.note(
        "Mean standard deviation over batches: "
        + listed([f"{name} {value:.4f}" for name, value in noise.items()])
        + "."
    )
    keep_figure(context, census, plot_raw({name: census.soundings[name] for name in shown}))


def site_rows(census: Census, names: list[str]) -> pd.DataFrame:
    """Make a row for each network and site: operator, kind, score, its standard deviation over batches."""
    parts = [
        pd.DataFrame(
            {
                "network": name,
                "site": [site.name for site in sounding.sites],
                "operator": [site.operator for site in sounding.sites],
                "kind": kinds_of(sounding.sites),
                "score": sounding.signature.to_numpy(),
                "std": sounding.std("affinity").to_numpy(),
            }
        )
        for name, sounding in ((name, census.soundings[name]) for name in names)
    ]
    return pd.concat(parts, ignore_index=True)


Lacking = Callable[[Census], str]
"""What is missing to decide something, in words; empty if nothing is."""
Test = Callable[[Census], Answer]
"""Decides a claim about networks, as if all of them were trained."""


network_item = partial(
    Item, seconds=Seconds(5, 2, 60), small=SMALL, sources=("imagenet",), optional=("plan",), device="cuda"
)
"""An item about these networks, which take their time once, in Figure 3."""


def take_census(context: RunContext) -> Census:
    """Measure the networks of this scale on their own data, and write their statistics as a table."""
    census = Census.of(dict(network_soundings(context)))
    context.table("networks", census.facts.join(census.statistics, how="right").reset_index())
    count, trained = len(census), len(census.trained)
    if trained == 0:
        context.note(
            f"{count} networks with random weights on noise: numbers are there to show that the item is "
            "complete, and decide nothing about trained networks."
        )
    else:
        context.note(f"{trained} trained networks: {', '.join(census.trained.soundings)}.")
    return census


def judged(census: Census, lacking: Lacking, test: Test, beside: Test | None = None) -> Answer:
    """Apply a test to the trained networks if all that it needs are here; else say what is missing.

    Where all are here with random weights, what they give is said, and nothing is decided.
    `beside` measures the same where there are too few trained networks to decide.
    """
    missing = lacking(census.trained)
    if not missing:
        return test(census.trained)
    if not lacking(census):
        found = test(census)
        return Answer(None, f"not decided: random weights; with these: {found.measured}", found.numbers)
    if beside is not None and len(census.trained):
        found = beside(census.trained)
        return Answer(None, f"not decided: needs {missing}; measured: {found.measured}", found.numbers)
    return Answer(None, f"not decided: needs {missing}")


def needs(*families: str, least: int = 1, networks: Sequence[str] = ()) -> Lacking:
    """Require networks by name, and a least number of each of some families.

    Example:
        >>> needs("ViT", "Swin", networks=["alexnet"])(Census.of({}))
        'trained alexnet, ViT and Swin'
        >>> needs("VGG", least=3)(Census.of({}))
        'trained VGG (3 or more)'
    """

    def lacking(census: Census) -> str:
        missing = [name for name in networks if name not in census.soundings]
        missing += [family for family in families if len(census.members(family)) < least]
        several = f" ({least} or more{' of each' if len(missing) > 1 else ''})" if least > 1 else ""
        return f"trained {listed(missing)}{several}" if missing else ""

    return lacking


def listed(words: Sequence[str]) -> str:
    """Write `a, b and c`.

    Example:
        >>> listed(["a", "b", "c"]), listed(["a"])
        ('a, b and c', 'a')
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
