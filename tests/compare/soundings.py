"""Soundings made of numbers, to compare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fathometer import Provenance, Site, Sounding


def sounding(
    name: str,
    affinity: Any,
    *,
    data: str | dict[str, Any] = "photos",
    pooling: str = "mean",
    samples: int = 100,
    seed: int = 0,
    weights: str = "trained",
    sha256: str = "0",
    operator: str = "relu",
    **gauges: Any,
) -> Sounding:
    """From `[sites]` or `[sites, batches]`."""
    columns = {"affinity": affinity, **gauges}
    arrays = {key: np.atleast_2d(np.asarray(value, float).T).T for key, value in columns.items()}
    sites, batches = arrays["affinity"].shape
    records = pd.DataFrame(
        {
            "site": [f"relu{site}" for _ in range(batches) for site in range(sites)],
            "batch": [batch for batch in range(batches) for _ in range(sites)],
            "n": samples,
            "d": 8,
            **{key: np.broadcast_to(array, (sites, batches)).T.ravel() for key, array in arrays.items()},
        }
    )
    facts = Provenance(
        model={"name": name, "weights": weights, "sha256": sha256},
        data=data if isinstance(data, dict) else {"name": data},
        settings={"samples": samples, "seed": seed, "reduction": {"pooling": pooling}},
    )
    return Sounding(tuple(Site(f"relu{i}", operator, 1, i, True) for i in range(sites)), records, facts)
