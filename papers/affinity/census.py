"""The table of trained networks that the items about architectures are decided on.

Each of these items is a figure and some predicates (`papers.affinity.predicates`) over one table with a row
for each network: what is known about it, and what its sounding says. A claim whose networks are missing is
not decided. Nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import skew

from fathometer import Sounding, load
from fathometer.compare import Distances, by_name, known_facts, signature_distances, signatures
from fathometer.errors import InputError
from papers.item import Claim, Item, NotDecided, Numbers, RunContext
from papers.ranks import spearman
from papers.roles import block_roles

SOUNDINGS = Path(__file__).parents[1] / "networks" / "soundings"
"""A folder for each set of networks, `imagenet` and `cifar10`, with a sounding for each network."""

SEVERAL = 2
"""Networks that a statement about a family needs: one network is not a family."""


class Group(NamedTuple):
    """Networks that a claim is about, and how many of them it needs."""

    members: tuple[str, ...]  # families, or networks by name
    networks: int = 1
    families: int = 0  # with a network here; 0 stands for all


EARLY = Group(("AlexNet", "VGG"))
LATER = Group(("Inception", "ResNet", "DenseNet", "MNASNet", "EfficientNet"), families=3)
BEFORE_VIT = Group((*EARLY.members, *LATER.members), families=5)
VIT = Group(("ViT",), SEVERAL)
PRIORS = Group(("Swin", "ConvNeXt"), 2 * SEVERAL)
RESNET, DENSENET, SWIN = (Group((family,), SEVERAL) for family in ("ResNet", "DenseNet", "Swin"))
PAPER = (*BEFORE_VIT.members, *VIT.members, *PRIORS.members)
"""The families of the paper."""

_SHOWN = ("vgg16", "resnet152", "densenet161", "efficientnet_b4", "vit_l_16", "swin_b", "convnext_base")
_PANELS = 9
_SMOKE = "cifar_vgg16 resnet20 resnet32 resnet44 resnet56 resnet110".split()  # of cifar10
_SETTINGS = {
    "imagenet": "networks with published weights of several sources, measured on 1000 images of ImageNet "
    "that they were probably trained on, in two batches of 500; the paper has 33 networks with torchvision's "
    "weights, on 50,000 validation images in batches of 512",
    "cifar10": "networks that were trained on CIFAR-10, measured on its test images in batches of 512; the "
    "paper's were trained and measured on ImageNet",
}


@dataclass(frozen=True, eq=False)
class Census:
    """Trained networks by name, and what is known about them."""

    soundings: Mapping[str, Sounding]
    scores: Mapping[str, NDArray[np.float64]]  # affinity score along the sites of each network
    facts: pd.DataFrame  # network × family, accuracy, depth, parameters, gflops, year, where they are known

    @cached_property
    def families(self) -> dict[str, str]:
        """Network → family."""
        return {str(name): str(family) for name, family in self.facts["family"].items()}

    @cached_property
    def distances(self) -> Distances:
        """DTW as in the paper: it sums along the alignment, and so grows with the number of sites."""
        return signature_distances(self.scores, "paper")

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each network: facts, statistics of its scores, roles of its sites, distances."""
        rows = {name: _described(self.scores[name], self.soundings[name]) for name in self.soundings}
        found = self.facts.join(pd.DataFrame.from_dict(rows, orient="index"))
        for column, group in (("to_early", EARLY), ("to_vit", VIT)):
            found[column] = self.distances.frame[self.named(group.members)].mean(axis=1)
        return found.assign(nearer_early=found["to_vit"] - found["to_early"])

    @cached_property
    def of_paper(self) -> Census:
        """The networks of the paper's families, without EfficientNet-lite, which has other activations."""
        return self.only(name for name in self.named(PAPER) if "_lite" not in name)

    def only(self, names: Iterable[str]) -> Census:
        """Keep some of the networks."""
        kept = list(names)
        soundings = {name: self.soundings[name] for name in kept}
        return Census(soundings, {name: self.scores[name] for name in kept}, self.facts.loc[kept])

    def group(self, group: Group) -> list[str]:
        """Return the networks of a group, or raise that there are too few."""
        names = self.named(group.members)
        there = [each for each in group.members if self.named((each,))]
        if len(there) < (group.families or len(group.members)) or len(names) < group.networks:
            some = f"networks of {group.families} of " if group.families else ""
            least = f" ({group.networks} networks or more)" if group.networks > 1 else ""
            raise NotDecided(
                f"needs trained {some}{', '.join(group.members)}{least}; there are "
                f"{', '.join(names) or 'none'}"
            )
        return names

    def by_architecture(self, values: pd.Series[float]) -> pd.DataFrame:
        """Average over the networks of each family and year, which are variations of one; by year."""
        table = self.facts.loc[values.index, ["family", "year"]].assign(value=values)
        return table.groupby(["family", "year"])["value"].mean().reset_index().sort_values("year")

    def shown(self) -> dict[str, Sounding]:
        """Choose what a figure shows: all networks if they are few, else one of each family."""
        if len(self.soundings) <= _PANELS:
            return dict(self.soundings)
        chosen = {family: name for name, family in self.families.items()}
        chosen |= {family: name for name, family in self.of_paper.families.items()}
        chosen |= {self.families[name]: name for name in _SHOWN if name in self.soundings}
        return {name: self.soundings[name] for name in chosen.values()}

    def named(self, members: Sequence[str]) -> list[str]:
        """Return the networks of some families, and those that are named themselves."""
        return [name for name, family in self.families.items() if family in members or name in members]


def _described(scores: NDArray[np.float64], sounding: Sounding) -> dict[str, float]:
    """Compute statistics of scores, and means over sites of one role; missing without such sites."""
    roles = block_roles(sounding.sites)
    transition = np.array(["transition" in site.module for site in sounding.sites])
    third, between, steps = max(len(scores) // 3, 1), scores[1:-1], np.diff(scores)
    found = {
        "after": roles.ends,
        "inside": roles.inside,
        "transition": transition,
        "elsewhere": ~transition & transition.any(),
    }
    means = {name: float(scores[mask].mean()) if mask.any() else np.nan for name, mask in found.items()}
    plateau = (scores[-1] - between.mean()) / between.std() if len(between) and np.ptp(between) else np.nan
    return means | {
        "sites": len(scores),
        "min": scores.min(),
        "max": scores.max(),
        "mean": scores.mean(),
        "median": float(np.median(scores)),
        "std": scores.std(),
        "spread": np.ptp(scores),
        "skewness": float(skew(scores)) if np.ptp(scores) else 0.0,
        "gap": means["after"] - means["inside"],
        "linearizes": means["transition"] - means["elsewhere"],
        "rise": spearman(np.arange(len(scores)), scores),
        "later": float(scores[-third:].mean() - scores[:third].mean()),
        # by how many standard deviations the last score is above those between; 0 if another step is larger
        "plateau": float(plateau) if len(steps) and steps.argmax() == len(steps) - 1 else 0.0,
    }


def census_of(soundings: Mapping[str, Sounding]) -> Census:
    """Make a census of the activations of soundings, with the facts that are recorded in them."""
    facts = known_facts(soundings)
    order = [column for column in ("year", "family", "parameters") if column in facts]
    facts = facts.sort_values(order, kind="stable")
    named, scores = by_name(soundings, "affinity"), signatures(soundings)
    names = [str(name) for name in facts.index]
    return Census({name: named[name] for name in names}, {name: scores[name] for name in names}, facts)


def take_census(context: RunContext) -> Census:
    """Read the soundings of this scale, and write the table of networks."""
    folder = SOUNDINGS / ("imagenet" if context.scale == "imagenet" else "cifar10")
    names = [file.stem for file in sorted(folder.glob("*.json"))]
    chosen = [name for name in names if context.scale != "smoke" or name in _SMOKE]
    if not chosen:
        raise InputError(f"{folder}: expected soundings; python -m papers.networks measure makes them")
    census = census_of({name: load(folder / f"{name}.json") for name in chosen})
    context.facts |= {"count": len(chosen), "networks": ", ".join(census.soundings)}
    notes: dict[str, list[str]] = {}
    for name, sounding in census.soundings.items():
        for note in sounding.provenance.model["facts"].get("notes", ()):
            notes.setdefault(note, []).append(name)
    context.facts["peculiar"] = "; ".join(f"{', '.join(names)}: {note}" for note, names in notes.items())
    context.table("networks", census.table.reset_index())
    return census


def network_item(
    name: str,
    title: str,
    draw: Callable[[RunContext, Census], None],
    claims: Mapping[str, Claim],
    also: Sequence[str] = (),
    changes: tuple[str, ...] = (),
) -> Item:
    """Make an item about trained networks. The paper's claims are decided on its families.

    Args:
        name: its name.
        title: its number in the paper, and what it shows.
        draw: writes its figure and its tables.
        claims: their `measure` takes a census.
        also: claims that speak of networks in general; they are decided on all networks, too, as ours.
        changes: what was changed after numbers had been seen.
    """

    def run(context: RunContext) -> Census:
        census = take_census(context)
        draw(context, census)
        return census

    def of_paper(census: Census, claim: Claim) -> Numbers:
        if not census.of_paper.soundings:
            raise NotDecided("needs trained networks of the paper's families")
        return claim.measure(census.of_paper)

    def of_all(census: Census, claim: Claim) -> Numbers:
        if len(census.of_paper.soundings) == len(census.soundings):
            raise NotDecided("there are no networks of other families")
        return claim.measure(census)

    found = {
        key: replace(claim, measure=partial(of_paper, claim=claim)) if claim.kind == "paper" else claim
        for key, claim in claims.items()
    }
    for key in also:
        found[f"{key}_all"] = replace(
            claims[key],
            words=f"{claims[key].words} (With networks that the paper does not have.)",
            test=f"The same with all networks that were measured. {claims[key].test}",
            kind="ours",
            measure=partial(of_all, claim=claims[key]),
        )
    return Item(
        name=name,
        title=title,
        claims=found,
        run=run,
        settings=_SETTINGS,  # type: ignore[arg-type]
        seconds={"smoke": 2, "imagenet": 10, "cifar10": 10},
        notes=("{count:.0f} networks: {networks}.", "Not all as published: {peculiar}."),
        changes=changes,
    )
