"""The similarity of every site with every other, of one network or of two, in the pass that measures them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from fathometer.capture import Pair, Site
from fathometer.errors import TooFewSamplesError, join_names
from fathometer.gauges.similarity import MIN_SAMPLES, cka_from_sums, hsic_sums
from fathometer.measuring.journal import FinishedBatch


def hsic_of_batch(pairs: Mapping[Site, Pair], rows: Mapping[Site, int]) -> bytes:
    """Return Σ n HSIC₁ of the outputs of every two sites, as the bytes of a matrix; none if n < 4.

    `rows` says how many samples each site has seen. Sites that saw another number than most, as experts that
    get some of the tokens, cannot be compared row by row with the others: they are NaN. So are those that
    `rows` does not have.
    """
    counts = Counter((rows[site], len(pair.y)) for site, pair in pairs.items() if site in rows)
    if not counts:
        return np.full((len(pairs), len(pairs)), np.nan).tobytes()
    usual = max(counts, key=lambda count: (counts[count], count))
    if usual[1] < MIN_SAMPLES:
        return b""
    chosen = {site: pair for site, pair in pairs.items() if (rows.get(site), len(pair.y)) == usual}
    sums = hsic_sums(
        {site.name: pair.y for site, pair in chosen.items()},
        {site.name: pair.resolution[1] for site, pair in chosen.items()},
    )
    places = [place for place, site in enumerate(pairs) if site in chosen]
    found = np.full((len(pairs), len(pairs)), np.nan)
    found[np.ix_(places, places)] = sums
    return found.tobytes()


def map_of_batches(sites: Sequence[Site], finished: Sequence[FinishedBatch]) -> pd.DataFrame:
    """Return the similarity of every two sites, from the sums of all batches."""
    names = [site.name for site in sites]
    index = {name: place for place, name in enumerate(names)}
    batches = [batch for batch in finished if batch.hsic]
    if not batches:
        raise TooFewSamplesError(
            f"expected at least {MIN_SAMPLES} samples in a batch for a map, got fewer", parameter="data"
        )
    total = np.zeros((len(names), len(names)))
    for batch in batches:
        places = [index[row.site.name] for row in batch.rows]
        found = np.full_like(total, np.nan)  # also for a site that this batch does not reach
        found[np.ix_(places, places)] = np.frombuffer(batch.hsic).reshape(len(places), -1)
        total += found
    own = np.diagonal(total)
    reasons = {"see other samples than most sites": np.isnan(own), "do not vary": own == 0}
    for reason, is_missing in reasons.items():
        if missing := [names[place] for place in np.flatnonzero(is_missing)]:
            warnings.warn(f"not in the map, since they {reason}: {join_names(missing, 3)}", stacklevel=4)
    return pd.DataFrame(cka_from_sums(total), index=names, columns=names)
