"""Makes every table and figure of docs/leaky.md.

    python -m examples.leaky_tables depths steps schemes --device cuda --out tables

Each name is one experiment; `--out` gets a CSV file of each, the pictures and the trained networks. Those
marked (GPU) take minutes on an H200 and hours on two cores; `--smoke` runs them with few networks and
epochs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from rich.console import Console

from fathometer.leaky import (
    Design,
    LeakySweep,
    Phase,
    Recipe,
    Teacher,
    grid,
    measure_path,
    preset,
    sweep,
)
from fathometer.leaky.schemes import paired_differences
from fathometer.progress import progress_bar
from fathometer.report import leaky_figures, save_figure
from papers.leaky.networks import SCHEMES, Plan, depth_plan, scheme_design, scheme_plan

PAPER, QUICK = preset("paper"), preset("quick")
DEPTHS = sorted({design.effective_depth for design in depth_plan("paper").designs})
COLUMNS = (
    "train_error test_error hamiltonian hamiltonian_stable cost_of_identity stable_rank rank gap affinity "
    "negative crit momentum length_per_root_n length_kernel"
).split()


class Lab:
    """Where to train, and where to write."""

    def __init__(self, device: str, out: Path, smoke: bool) -> None:
        self.device, self.out, self.smoke = device, out, smoke

    def train(self, name: str, designs: Sequence[Design], recipe: Recipe) -> LeakySweep:
        """Train the networks in a folder, from which an interrupted run resumes."""
        if self.smoke:
            designs = [d for d in designs if d.seed == 0][:4]
            recipe = Recipe(tuple(replace(phase, epochs=20) for phase in recipe.phases))
        with progress_bar(name) as show:
            folder = self.out / name
            return sweep(designs, recipe, device=self.device, out=folder, resume=True, progress=show)

    def write(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """Keep a table."""
        table.to_csv(self.out / f"{name}.csv", index=False)
        return table

    def draw(self, name: str, found: LeakySweep) -> None:
        """Keep the pictures that a sweep can show."""
        for figure, picture in leaky_figures(found).figures.items():
            save_figure(picture, self.out / f"{name}-{figure}.png")


def depths(lab: Lab) -> pd.DataFrame:
    """Figures 1 and 3: eight depths, five seeds, λ₀ = 0.03, 16 000 epochs (GPU)."""
    found = lab.train("depths", *depth_plan("paper"))
    lab.draw("depths", found)
    lab.write("depths", found.table)
    return by(found, "effective_depth")


def preset_depths(lab: Lab) -> pd.DataFrame:
    """The same with the preset `paper`: λ₀ = 0.1, 4000 epochs (GPU)."""
    found = lab.train("preset", grid(PAPER.design, effective_depth=DEPTHS, seeds=5), PAPER.recipe)
    lab.write("preset", found.table)
    return by(found, "effective_depth")


def deep(lab: Lab) -> pd.DataFrame:
    """L̃ = 40 and 80 with 100 layers, at a learning rate that does not grow with L̃ (GPU)."""
    designs = grid(replace(PAPER.design, layers=100), effective_depth=[40.0, 80.0], seeds=3)
    found = lab.train("deep", designs, Recipe((Phase("adam", 12_000, 0.02, by_depth=False),)))
    return lab.write("deep", found.table)[["effective_depth", "seed", *COLUMNS]]


def schemes(lab: Lab) -> pd.DataFrame:
    """Figure 2: steps of three kinds, six numbers of layers, sixteen seeds (GPU)."""
    return _schemes(lab, "schemes", scheme_plan("paper"))


def schemes_small(lab: Lab) -> pd.DataFrame:
    """The same with networks of the preset `quick`."""
    designs = grid(scheme_design(QUICK), layers=[4, 6, 10, 14, 18, 24], scheme=SCHEMES, seeds=16)
    return _schemes(lab, "schemes-small", Plan(designs, QUICK.recipe))


def _schemes(lab: Lab, name: str, plan: Plan) -> pd.DataFrame:
    found = lab.train(name, *plan)
    lab.draw(name, found)
    return lab.write(name, paired_differences(found))


def literal(lab: Lab) -> pd.DataFrame:
    """Use the recipe exactly as the paper states it (GPU)."""
    words = preset("literal")
    designs = grid(words.design, effective_depth=[1.0, 3.0, 7.0, 14.0], seeds=3)
    found = lab.train("literal", designs, words.recipe)
    lab.write("literal", found.table)
    return by(found, "effective_depth")


def steps(lab: Lab) -> pd.DataFrame:
    """How flat the Hamiltonian is with more and more layers; networks of the preset `quick`."""
    rows = []
    for layers in (12, 24, 48, 96):
        designs = grid(replace(QUICK.design, layers=layers), effective_depth=[3.0, 8.0], seeds=3)
        for run in lab.train(f"steps-{layers}", designs, QUICK.recipe).runs:
            along = run.measure(warn=False).layers
            row = {"effective_depth": run.design.effective_depth, "layers": layers, "seed": run.design.seed}
            kinds = ("hamiltonian", "hamiltonian_plain", "hamiltonian_averaged")
            row |= {f"std_{kind}": along[kind].std() for kind in kinds}
            rows.append({**row, "crit": run.measure().summary["crit"]})
    table = lab.write("steps", pd.DataFrame(rows))
    return table.drop(columns="seed").groupby(["effective_depth", "layers"]).mean().reset_index()


def second_order(lab: Lab) -> pd.DataFrame:
    """What L-BFGS adds to Adam, and what more Adam adds; networks of the preset `quick`."""
    (adam,) = QUICK.recipe.phases
    recipes = {
        "adam": QUICK.recipe,
        "adam, four times as long": Recipe((replace(adam, epochs=4 * adam.epochs),)),
        "adam, then 2000 evaluations": Recipe((adam, Phase("lbfgs", 2000))),
    }
    rows: list[dict[str, object]] = []
    for number, (name, recipe) in enumerate(recipes.items()):
        found = lab.train(f"second-{number}", grid(QUICK.design, rank=[3], seeds=5), recipe)
        for run in found.runs:
            inner = run.path.representations[:-1]
            near = (inner / inner.square().mean((1, 2), keepdim=True).sqrt()).abs()
            last = run.history.iloc[-1]
            row = {"recipe": name, "loss": last.error + last.decay, "crit": run.measures.summary["crit"]}
            row |= {f"within {limit:g}": (near < limit).double().mean().item() for limit in (1e-3, 1e-6)}
            rows.append(row)
    table = lab.write("second-order", pd.DataFrame(rows))
    return table.groupby("recipe", sort=False).mean().reset_index()


def centred(lab: Lab) -> pd.DataFrame:
    """Teachers with centred latents, and the cost of identity for several γ₀; preset `quick`."""
    designs = grid(replace(QUICK.design, teacher=Teacher(latents="centred")), rank=[2, 3, 4], seeds=3)
    found = lab.train("centred", designs, QUICK.recipe)
    table = lab.write("centred", found.table)[["rank_of_task", "seed", "rank", "gap", "crit"]]
    path = found.runs[-1].path
    for gamma in (1e-1, 1e-2, 1e-3, 1e-4, 1e-8):
        cost = measure_path(path, gamma0=gamma, affinity=False, warn=False).summary["cost_of_identity"]
        Console().print(f"γ₀ = {gamma:g}: COI {cost:.3g}", highlight=False)
    return table


EXPERIMENTS: dict[str, Callable[[Lab], pd.DataFrame]] = {
    "depths": depths,
    "preset": preset_depths,
    "deep": deep,
    "schemes": schemes,
    "schemes-small": schemes_small,
    "literal": literal,
    "steps": steps,
    "second-order": second_order,
    "centred": centred,
}


def by(found: LeakySweep, key: str) -> pd.DataFrame:
    """Mean ± standard deviation over seeds."""
    groups = found.table.groupby(key)[COLUMNS]
    mean, std = groups.mean(), groups.std()
    cells = {
        name: [f"{a:.3g} ± {b:.2g}" for a, b in zip(mean[name], std[name], strict=True)] for name in COLUMNS
    }
    return pd.DataFrame(cells, index=mean.index).reset_index()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run experiments, print and keep their tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+", choices=EXPERIMENTS, metavar="NAME", help=", ".join(EXPERIMENTS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("tables"), metavar="FOLDER")
    parser.add_argument("--smoke", action="store_true", help="few networks, few epochs: does it run?")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    lab = Lab(options.device, options.out, options.smoke)
    for name in options.names:
        table = EXPERIMENTS[name](lab)
        print(f"\n{name}: {EXPERIMENTS[name].__doc__}\n{table.to_string(index=False)}", flush=True)


if __name__ == "__main__":
    main()
