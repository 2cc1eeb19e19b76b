"""The leaky lab: Leaky ResNets, the path of their representations, its energies, and the theory, tested."""

from fathometer.leaky.dynamics import Flow, flow
from fathometer.leaky.measures import PathMeasures, measure_path
from fathometer.leaky.model import LeakyResNet
from fathometer.leaky.path import RepresentationPath, path_of, path_through
from fathometer.leaky.plan import PRESETS, Design, Phase, Preset, Recipe, grid, preset
from fathometer.leaky.run import LeakyRun, LeakySweep
from fathometer.leaky.run_files import load_sweep
from fathometer.leaky.steps import equidistant, given, irregular
from fathometer.leaky.sweeping import sweep
from fathometer.leaky.teacher import Task, Teacher, own_task

__all__ = [
    "PRESETS",
    "Design",
    "Flow",
    "LeakyResNet",
    "LeakyRun",
    "LeakySweep",
    "PathMeasures",
    "Phase",
    "Preset",
    "Recipe",
    "RepresentationPath",
    "Task",
    "Teacher",
    "equidistant",
    "flow",
    "given",
    "grid",
    "irregular",
    "load_sweep",
    "measure_path",
    "own_task",
    "path_of",
    "path_through",
    "preset",
    "sweep",
]
