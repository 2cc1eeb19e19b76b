"""Prints the tables of docs/affinity-score.md: what the affinity score can and cannot see.

python -m examples.what_the_score_sees
"""

from __future__ import annotations

import numpy as np
import torch

from fathometer import Ridge, affinity_score, r2, r2_heldout

DIMENSIONS = (1, 2, 8, 64, 512, 2048)


def main() -> None:
    """Each table with a generator of its own."""
    laws_not_pairs()
    straight_but_falling()
    shrinkage()
    very_wide()
    regression()
    ridges()


def laws_not_pairs() -> None:
    """Order and independence, 512 samples of N(0, I)."""
    rng = np.random.default_rng(0)
    print("d", *DIMENSIONS, sep="\t")
    for name in ("ReLU(x)", "-x", "independent", "shuffled"):
        scores = []
        for d in DIMENSIONS:
            x = rng.normal(size=(512, d))
            images = {
                "ReLU(x)": np.maximum(x, 0),
                "-x": -x,
                "independent": rng.normal(size=x.shape),
                "shuffled": rng.permutation(x),
            }
            scores.append(f"{float(affinity_score(x, images[name])):.3f}")
        print(name, *scores, sep="\t")
    x = rng.normal(size=(512, 64))
    rotation = np.linalg.qr(rng.normal(size=(64, 64)))[0]
    print(f"a rotation at d = 64: {float(affinity_score(x, x @ rotation)):.3f}")
    for n in (128, 512, 2048):
        x = rng.normal(size=(n, 64))
        print(f"-x at d = 64, n = {n}: {float(affinity_score(x, -x)):.3f}")


def straight_but_falling() -> None:
    """SiLU far left of its minimum, and −x, at the size of Figure 6."""
    generator = torch.Generator().manual_seed(0)
    x = -20 + 0.01 * torch.randn(1000, 300, generator=generator, dtype=torch.float64)
    y = torch.nn.functional.silu(x)
    correlation = torch.corrcoef(torch.stack((x.flatten(), y.flatten())))[0, 1]
    print(f"SiLU on N(-20, .01²): {float(affinity_score(x, y)):.3f}, correlation {float(correlation):.5f}")
    print(f"-x there: {float(affinity_score(x, -x)):.3f}")


def shrinkage() -> None:
    """A diagonal map whose entries run from 1 to 100 in equal ratios."""
    x = np.random.default_rng(0).normal(size=(512, 64))
    y = x * np.geomspace(1, 100, 64)
    plain, shrunk = affinity_score(x, y, covariance="sample"), affinity_score(x, y)
    print(f"diagonal map: sample {float(plain):.3f}, ledoit-wolf {float(shrunk):.3f}")


def very_wide() -> None:
    """ReLU of 64 samples of N(0, I), by dimension."""
    rng = np.random.default_rng(0)
    for d in (64, 512, 4096, 50_000):
        x = rng.normal(size=(64, d))
        print(f"ReLU, n = 64, d = {d}: {float(affinity_score(x, np.maximum(x, 0))):.3f}")


def regression() -> None:
    """R² of ReLU, in the sample and held out."""
    rng = np.random.default_rng(0)
    for d in (64, 256, 512, 1024):
        x = rng.normal(size=(512, d))
        y = np.maximum(x, 0)
        print(
            f"ReLU at d = {d}: R² {float(r2(x, y)):.3f}, held out {float(r2_heldout(x, y)):.3f}, "
            f"affinity {float(affinity_score(x, y)):.3f}"
        )


def ridges() -> None:
    """A relative and an absolute ridge, by the scale of the inputs."""
    x = np.random.default_rng(0).normal(size=(512, 64))
    for scale in (1, 1e-2, 1e-3, 1e-4, 1e-5):
        y = np.maximum(scale * x, 0)
        relative = affinity_score(scale * x, y)
        absolute = affinity_score(scale * x, y, ridge=Ridge(1e-6, relative=False))
        print(f"ReLU at scale {scale:g}: relative {float(relative):.3f}, absolute {float(absolute):.3f}")


if __name__ == "__main__":
    main()
