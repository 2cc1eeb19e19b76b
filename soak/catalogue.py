"""All programs, in the order of the page."""

from __future__ import annotations

from soak.faults.clock import CLOCK
from soak.faults.disk import DISK
from soak.faults.killed import KILLED
from soak.faults.ray_deaths import RAY
from soak.faults.truncated import TRUNCATED
from soak.faults.two_processes import TWO_PROCESSES
from soak.files import FUZZ_FILES
from soak.gauges.checked import ON_CPU, ON_CUDA
from soak.gauges.fuzz import FUZZ
from soak.networks.libraries import TIMM, TORCHVISION, TRANSFORMERS
from soak.networks.own import OWN
from soak.program import Program
from soak.security import SECURITY

PROGRAMS: list[Program] = [
    ON_CPU,
    ON_CUDA,
    FUZZ,
    OWN,
    TORCHVISION,
    TIMM,
    TRANSFORMERS,
    KILLED,
    DISK,
    TRUNCATED,
    TWO_PROCESSES,
    RAY,
    CLOCK,
    FUZZ_FILES,
    SECURITY,
]
