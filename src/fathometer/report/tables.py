"""What pictures of soundings show, as tables: figures for print and charts of a page draw the same ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from fathometer.capture.sites import PARTS, Site
from fathometer.compare import Clustering, Modes, by_name, dip_test, signatures, two_modes
from fathometer.compare.distance import Align, aligned
from fathometer.compare.soundings import Array, Soundings, measured_gauges, short_name
from fathometer.compare.summary import MIN_VALUES
from fathometer.errors import InputError, join_names
from fathometer.gauges.registry import MAX_TRIMMED_GAP
from fathometer.report.blocks import blocks_of
from fathometer.results.linearized import Linearized
from fathometer.results.similarity import SimilarityMap
from fathometer.results.sounding import Sounding, column_of

Along: TypeAlias = Literal["depth", "dtw"]

RESIDUAL_GAUGES = {
    "stable_rank": "stable rank",
    "cost_of_identity": "cost of identity",
    "speed": "speed",
}
"""What is shown along residual blocks, with labels."""

LAYER_KINDS = ("activation", "attention", "mlp", "block")
"""Kinds of sites that are shown by layer."""


def signature_table(
    soundings: Sounding | Soundings, gauge: str = "affinity", along: Along = "depth"
) -> pd.DataFrame:
    """Return a row for each network and site, in order of depth.

    Columns: `network`, `site`, `operator`, `call`, `block`, `after_sum`, `samples`, `features`, `order` (from
    0), `depth` (from 0 at the first site to 1 at the last), `mean` over batches (NaN if not finite) and `std`
    (0 if there is one batch). With `along="dtw"`, `depth` is the mean depth of the sites of the first network
    that a site is aligned with.
    """
    named = by_name([soundings] if isinstance(soundings, Sounding) else soundings, gauge)
    reference = next(iter(named.values()))
    parts = []
    for name, sounding in named.items():
        mean, std = (values.to_numpy(float) for values in (sounding.mean(gauge), sounding.std(gauge)))
        part = site_table(sounding).assign(
            network=name,
            mean=np.where(np.isfinite(mean), mean, np.nan),
            std=np.where(np.isfinite(std), std, 0.0),
        )
        if along == "dtw" and sounding is not reference:
            place, own = aligned(reference, sounding, gauge, "dtw").pairs.T
            depth = relative_depth(len(reference.sites))[place]
            part["depth"] = np.bincount(own, depth) / np.bincount(own)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def site_table(sounding: Sounding) -> pd.DataFrame:
    """Return a row for each site, in order of depth: the columns of `signature_table` without the values."""
    names = [site.name for site in sounding.sites]
    sizes = sounding.records.drop_duplicates("site").set_index("site").reindex(names)
    return pd.DataFrame(
        {
            "site": names,
            "operator": [site.operator for site in sounding.sites],
            "call": [site.call for site in sounding.sites],
            "block": [block.name for block in blocks_of(sounding.sites) for _ in range(len(block))],
            "after_sum": [site.after_sum for site in sounding.sites],
            "samples": sizes["n"].to_numpy(),
            "features": sizes["d"].to_numpy(),
            "order": np.arange(len(names)),
            "depth": relative_depth(len(names)),
        }
    )


def has_layers(sounding: Sounding) -> bool:
    """Tell whether to show a sounding by layer: it has R² of parts of a transformer with one stack of layers.

    An encoder with a decoder has two stacks, and two kinds of attention.
    """
    parts = _parts(sounding)
    if "r2_heldout" not in sounding.gauges or len(parts) > len(set(parts)):
        return False
    values = sounding.records.loc[sounding.records["kind"].isin(PARTS), "r2_heldout"]
    return bool(np.isfinite(values).any())


def layer_table(soundings: Sounding | Soundings, gauge: str | None = None) -> pd.DataFrame:
    """Return a row for each network, series and layer of transformers.

    Columns: `network`, `kind` (one of `LAYER_KINDS`), `residual`, `series` (`mlp +residual`), `gauge`,
    `layer`, `mean` over batches, `std` (0 if there is one batch), and `trimmed`: r2_trimmed where it differs
    from r2_heldout by more than `MAX_TRIMMED_GAP`, else NaN. Several activations of a layer, such as those of
    experts, are one row, their mean. Series without a finite value, and sites with fewer samples than
    others, are left out.

    Args:
        soundings: of transformers, with parts.
        gauge: what to show at all kinds of sites; if left out, affinity at activations, r2_heldout at parts.
    """
    named = {short_name(soundings): soundings} if isinstance(soundings, Sounding) else by_name(soundings)
    gauge = gauge and column_of(gauge, measured_gauges(named.values()))
    every = pd.concat([_by_layer(sounding).assign(network=name) for name, sounding in named.items()])
    keys = ["network", "series", "layer"]
    trimmed = every[every["gauge"] == "r2_trimmed"].set_index(keys)["mean"].rename("trimmed")
    shown = gauge or np.where(every["kind"] == "activation", "affinity", "r2_heldout")
    table = every[every["gauge"] == shown].join(trimmed, on=keys).reset_index(drop=True)
    if table.empty:
        raise InputError(f"{gauge or 'r2_heldout'!r} has no finite value at any layer; choose another gauge")
    is_far = (table["mean"] - table["trimmed"]).abs() > MAX_TRIMMED_GAP
    table["trimmed"] = table["trimmed"].where(is_far & (table["gauge"] == "r2_heldout"))
    return table


def layer_panels(table: pd.DataFrame) -> tuple[str, dict[str, pd.DataFrame]]:
    """Return the column of a `layer_table` whose values are lines, and the rows of each panel.

    One network has a panel for each gauge and a line for each kind; several have a panel for each kind and a
    line for each network.
    """
    line, panel = ("kind", "gauge") if table["network"].nunique() == 1 else ("network", "kind")
    return line, {str(name): rows for name, rows in table.groupby(panel, sort=False, observed=True)}


def gauge_table(sounding: Sounding) -> pd.DataFrame:
    """Return every gauge by layer: the columns `kind` to `std` of a `layer_table`, and these.

    `row` from 0, in the order of series and gauges; `low` and `high`, the range of the row; `share`, 0 at the
    lowest value of the row and 1 at the highest.
    """
    table = _by_layer(sounding)
    rows = table.groupby(["series", "gauge"], sort=False)
    low, high = rows["mean"].transform("min"), rows["mean"].transform("max")
    share = (table["mean"] - low) / (high - low).replace(0, 1)
    return table.assign(row=rows.ngroup(), low=low, high=high, share=share)


def _by_layer(sounding: Sounding) -> pd.DataFrame:
    """Return the columns `kind` to `std` of a `layer_table`, for all gauges."""
    parts, keys = _parts(sounding), ["kind", "residual", "layer"]
    if len(parts) > len(set(parts)):
        raise InputError("expected one stack of layers, got several, as an encoder with a decoder has")
    residual = {site.name: site.residual for site in sounding.sites}
    records = sounding.records[~sounding.records["site"].isin(sounding.undersampled)]
    kinds = pd.Categorical(records["kind"], LAYER_KINDS)
    records = records.assign(kind=kinds, residual=records["site"].map(residual)).dropna(subset=keys)
    if records.empty:
        raise InputError(
            "expected sites with layers, got none; measure parts of a transformer, as "
            'measure(..., sites="activations,mlp,attention") does, on the command line --sites'
        )
    batches = records.groupby([*keys, "batch"], observed=True)[sounding.gauges].mean()
    layers = batches.where(np.isfinite(batches)).groupby(keys, observed=True)
    mean, std = layers.mean(), layers.std().fillna(0)
    both = {gauge: pd.DataFrame({"mean": mean[gauge], "std": std[gauge]}) for gauge in sounding.gauges}
    table = pd.concat(both, names=["gauge"]).reset_index().sort_values(["kind", "residual"], kind="stable")
    sums = table["residual"].map({False: "", True: " +residual"})
    table = table.assign(series=table["kind"].astype(str) + sums, layer=table["layer"].astype(int))
    known = table.groupby(["series", "gauge"])["mean"].transform("count") > 0
    return table[known].reset_index(drop=True)


def _parts(sounding: Sounding) -> list[tuple[str | None, int | None, bool]]:
    """Return kind, layer and residual of the parts; in one stack of layers no two are equal."""
    return [(site.kind, site.layer, site.residual) for site in sounding.sites if site.kind in PARTS]


def clear_modes(values: Array) -> Modes | None:
    """Return the two modes of a sample that has two (dip, p < 0.05), and None otherwise."""
    if len(values) < MIN_VALUES or dip_test(values)[1] >= 0.05:
        return None  # the fit takes much longer than the test
    return two_modes(values)


def relative_depth(count: int) -> Array:
    """Return so many depths, from 0 at the first site to 1 at the last."""
    return np.arange(count) / max(count - 1, 1)


def alignment_table(soundings: Soundings, gauge: str = "affinity", by: Align = "auto") -> pd.DataFrame:
    """Return a row for each pair of sites that two soundings have in common.

    Columns: of `first` and `second` the `…_order`, `…_depth`, `…_mean`, `…_std` and `…_after_sum` of the
    site; `difference`, second minus first, and its standard deviation `std`. `attrs` hold `names`, `how` they
    were aligned (`dtw` or `sites`) and their `distance`.
    """
    named = by_name(soundings, gauge)
    if len(named) != 2:
        raise InputError(f"expected two soundings to compare, got {len(named)}")
    one, other = named.values()
    alignment = aligned(one, other, gauge, by)
    table = pd.DataFrame()
    for side, (place, name) in zip(("first", "second"), enumerate(named), strict=True):
        sites = signature_table({name: named[name]}, gauge).iloc[alignment.pairs[:, place]]
        for column in ("order", "depth", "mean", "std", "after_sum"):
            table[f"{side}_{column}"] = sites[column].to_numpy()
    table["difference"] = table["second_mean"] - table["first_mean"]
    table["std"] = np.hypot(table["first_std"], table["second_std"])
    table.attrs = {"names": list(named), "how": alignment.how, "distance": alignment.distance}
    return table


def year_table(soundings: Soundings, facts: pd.DataFrame, gauge: str = "affinity") -> pd.DataFrame:
    """Return a row for each network with a known year: `year`, `family`, `min`, `median`, `max` over sites.

    Rows are in order of year. `place` is the year, with networks of one year beside each other around it;
    `year_median` the median over the networks of a year of their medians.
    `facts` are network × `year`, and `family` if known, as `known_facts` and `read_facts` return them.
    """
    found = signatures(soundings, gauge)
    years = facts["year"].dropna() if "year" in facts else pd.Series(dtype=float)
    families = facts["family"] if "family" in facts else pd.Series(dtype=object)
    rows = [
        (name, int(years[name]), str(families.get(name) or ""), v.min(), float(np.median(v)), v.max())
        for name, v in found.items()
        if name in years.index
    ]
    if not rows:
        raise InputError(
            "years: expected the years in which networks were published, got none for "
            f"{join_names(list(found), 5)}; give a CSV with columns network and year (read_facts), or facts "
            "in a survey's plan"
        )
    table = pd.DataFrame(rows, columns=["network", "year", "family", "min", "median", "max"])
    table = table.sort_values("year", kind="stable").set_index("network")
    within = table.groupby("year")["year"]
    middle = (within.transform("size") - 1) / 2
    table["year_median"] = table.groupby("year")["median"].transform("median")
    table["place"] = table["year"] + 0.7 * (within.cumcount() - middle) / max(within.size().max(), 2)
    return table


def matrix_table(clustering: Clustering) -> pd.DataFrame:
    """Return a row for each cell of the distance matrix, in the order of the tree's leaves.

    Columns: `network` and `other`, `row` and `column` from 0, `distance`.
    """
    names, matrix = np.array(clustering.names, object), clustering.ordered.to_numpy()
    row, column = (part.ravel() for part in np.indices(matrix.shape))
    cells = {"network": names[row], "other": names[column], "row": row, "column": column}
    return pd.DataFrame({**cells, "distance": matrix.ravel()})


def map_table(result: Sounding | SimilarityMap) -> pd.DataFrame:
    """Return a row for each cell of a similarity map: `row` and `column` from 0, and `cka`."""
    if isinstance(result, SimilarityMap):
        values = result.values
    elif result.map is not None:
        values = result.map
    else:
        raise InputError(
            'expected a sounding with a map, got one without; measure(..., map="cka") computes it, on the '
            "command line --map"
        )
    row, column = (part.ravel() for part in np.indices(values.shape))
    return pd.DataFrame({"row": row, "column": column, "cka": values.to_numpy(float).ravel()})


def curve_table(result: Linearized) -> pd.DataFrame:
    """Return a row for each step of a linearized network: `replaced`, `site`, `value`, and its `measure`.

    The value is the accuracy, the perplexity, the agreement with the original network, or the divergence,
    whichever is known first.
    """
    known = [name for name in ("accuracy", "perplexity", "agreement") if name in result.curve]
    name = next((name for name in known if result.curve[name].notna().all()), "divergence")
    found = result.curve[["replaced", "site"]].assign(value=result.curve[name])
    words = {"agreement": "agreement with the original", "divergence": result.divergence_name}
    return found.assign(measure=words.get(name, name))


def site_cost_table(result: Linearized) -> pd.DataFrame:
    """Return a row for each site: `site`, `order`, `cost`, `r2`, `replaced`, and the `measure` of the cost.

    Without costs, where all sites were replaced at once, it is the share of the variance that lines leave.
    """
    table = result.table.reset_index()
    has_costs = table["cost"].notna().all()
    return pd.DataFrame(
        {
            "site": table["site"],
            "order": np.arange(len(table)),
            "cost": table["cost"] if has_costs else 1 - table["r2"],
            "r2": table["r2"],
            "replaced": table["step"] > 0,
            "measure": f"cost alone, by {result.provenance.settings.get('criterion')}"
            if has_costs
            else "1 - R²",
        }
    )


def missing_cells(result: Sounding | SimilarityMap) -> str:
    """Say that cells of a similarity map have no value, and why; empty if all have one."""
    missing = map_table(result)["cka"].isna()
    if not missing.any():
        return ""
    which = "No cell has a" if missing.all() else f"{missing.sum()} of {len(missing)} cells have no"
    return f"{which} value: the sites do not vary, or saw other samples than most."


def map_sites(result: Sounding | SimilarityMap) -> tuple[Sequence[Site], Sequence[Site]]:
    """Return the sites of the rows of a similarity map, and those of its columns."""
    if isinstance(result, SimilarityMap):
        return result.first, result.second
    return result.sites, result.sites


def branch_table(clustering: Clustering) -> pd.DataFrame:
    """Return four rows for each merge of the tree, the corners of its bracket.

    Columns: `merge` and `step` from 0, `row` (of the matrix, leaves at whole numbers) and `height`.
    """
    count = len(clustering.order)
    row, heights = np.zeros(2 * count - 1), np.zeros(2 * count - 1)
    row[list(clustering.order)] = np.arange(count)
    rows = []
    for merge, (a, b, height, _) in enumerate(clustering.linkage):
        left, right, new = int(a), int(b), count + merge
        corners = [(left, heights[left]), (left, height), (right, height), (right, heights[right])]
        rows += [(merge, step, row[leaf], level) for step, (leaf, level) in enumerate(corners)]
        row[new], heights[new] = (row[left] + row[right]) / 2, height
    return pd.DataFrame(rows, columns=["merge", "step", "row", "height"])


def predictor_table(
    best: pd.DataFrame,
    statistics: pd.DataFrame,
    facts: pd.DataFrame,
    families: Mapping[str, str],
    target: str = "accuracy",
) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    """Return for each row of `best` the row, and its networks with `value`, `target` and the line `fit`.

    `best` is what `best_predictors` returns for the same statistics, facts, families and target.
    """
    found = []
    for row in best.to_dict("records"):
        source = statistics if row["kind"] == "signature" else facts
        table = pd.DataFrame({"value": source[row["predictor"]], "target": facts[target]}, statistics.index)
        table = table[[families.get(str(name)) == row["family"] for name in table.index]]
        table = table[np.isfinite(table.to_numpy(float)).all(axis=1)].rename_axis("network")
        table["fit"] = table["target"].mean() + row["slope"] * (table["value"] - table["value"].mean())
        found.append(({str(key): value for key, value in row.items()}, table))
    return found


def residual_path_table(paths: Sequence[Sounding]) -> pd.DataFrame:
    """Return what `residual_path` measured: a row for each path, gauge and block.

    Columns: `number` of the path, `gauge`, `order` (from 1; the stable rank begins with 0, the input of the
    first block), `depth` (`order` over the number of blocks), `mean` and `std` over batches (0 if one batch).
    """
    parts = []
    for number, path in enumerate(paths):
        for gauge in (gauge for gauge in RESIDUAL_GAUGES if gauge in path.gauges):
            values = pd.DataFrame({"mean": path.mean(gauge), "std": path.std(gauge).fillna(0)})
            order = np.arange(1, len(values) + 1)
            if gauge == "stable_rank":
                start = [path.mean("stable_rank_in").iloc[0], path.std("stable_rank_in").fillna(0).iloc[0]]
                first = pd.DataFrame([start], columns=["mean", "std"])
                values, order = pd.concat([first, values], ignore_index=True), np.r_[0, order]
            part = values.reset_index(drop=True)
            parts.append(part.assign(number=number, gauge=gauge, order=order, depth=order / len(path.sites)))
    return pd.concat(parts, ignore_index=True)


def families_of(facts: pd.DataFrame) -> dict[str, str]:
    """Return network → family, where it is known."""
    if "family" not in facts:
        return {}
    return {str(name): str(family) for name, family in facts["family"].dropna().items()}


def step_edges(steps: Sequence[int]) -> Array:
    """Return where each step of a training begins and ends on an axis: half-way to its neighbours."""
    centres = np.array(steps, float)
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    middles = (centres[1:] + centres[:-1]) / 2
    return np.r_[2 * centres[0] - middles[0], middles, 2 * centres[-1] - middles[-1]]
