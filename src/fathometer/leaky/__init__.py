"""The leaky lab: Leaky ResNets, the path of their representations, its energies, and tests of the theory."""

from fathometer.leaky.dynamics import Flow, flow
from fathometer.leaky.energy import (
    Hamiltonians,
    criticality,
    exact_cost,
    gamma_of,
    hamiltonians,
    in_dimensions,
)
from fathometer.leaky.measures import BOTTLENECK, CRITICAL, PathMeasures, measure_path
from fathometer.leaky.model import LeakyResNet
from fathometer.leaky.nonlinearity import Nonlinearity, nonlinearity, register_sigma
from fathometer.leaky.path import RepresentationPath, path_of, path_through
from fathometer.leaky.plan import PRESETS, Design, Phase, Preset, Recipe, Scheme, grid, preset
from fathometer.leaky.run import LeakyRun, LeakySweep
from fathometer.leaky.run_files import load_sweep
from fathometer.leaky.schemes import (
    BASELINE,
    held_out_errors,
    paired_differences,
    project_paths,
    seed_differences,
)
from fathometer.leaky.steps import custom_steps, equidistant, irregular
from fathometer.leaky.sweeping import sweep
from fathometer.leaky.teacher import Task, Teacher, own_task

__all__ = [
    "BASELINE",
    "BOTTLENECK",
    "CRITICAL",
    "PRESETS",
    "Design",
    "Flow",
    "Hamiltonians",
    "LeakyResNet",
    "LeakyRun",
    "LeakySweep",
    "Nonlinearity",
    "PathMeasures",
    "Phase",
    "Preset",
    "Recipe",
    "RepresentationPath",
    "Scheme",
    "Task",
    "Teacher",
    "criticality",
    "custom_steps",
    "equidistant",
    "exact_cost",
    "flow",
    "gamma_of",
    "grid",
    "hamiltonians",
    "held_out_errors",
    "in_dimensions",
    "irregular",
    "load_sweep",
    "measure_path",
    "nonlinearity",
    "own_task",
    "paired_differences",
    "path_of",
    "path_through",
    "preset",
    "project_paths",
    "register_sigma",
    "seed_differences",
    "sweep",
]
