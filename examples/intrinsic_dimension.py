"""Draws the intrinsic dimension along several networks, and prints the table of docs/trained-networks.md.

    python -m examples.intrinsic_dimension ResNet-18=resnet18.json … --out intrinsic-dimension.png

docs/trained-networks.md has the commands that measure the networks.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from fathometer import Sounding, load
from fathometer.report import (
    column_figure,
    for_print,
    legend_above,
    relative_depth,
    save_figure,
    series_style,
)

GAUGES = {"intrinsic_dimension_twonn_y": "TwoNN", "intrinsic_dimension_mle_y": "maximum likelihood"}


@for_print
def picture(soundings: Mapping[str, Sounding]) -> Figure:
    """Both estimates of the outputs over relative depth, with one standard deviation over batches."""
    figure = column_figure(2, 2.7)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (gauge, title) in zip(panels, GAUGES.items(), strict=True):
        for number, (name, sounding) in enumerate(soundings.items()):
            mean, spread = sounding.mean(gauge), sounding.std(gauge)
            style = series_style(number) | {"markersize": 3, "elinewidth": 0.7}
            axes.errorbar(relative_depth(len(mean)), mean, spread, label=name, **style)
        axes.set(title=title, xlabel="relative depth", ylim=(0, None))
    panels[0].set_ylabel("intrinsic dimension of the outputs")
    legend_above(figure, panels[0].get_legend_handles_labels()[0])
    return figure


def row(name: str, sounding: Sounding) -> str:
    """A line of the table: accuracy, and where each estimate is smallest and largest."""
    cells = [name, "–" if sounding.accuracy is None else f"{100 * sounding.accuracy:.1f}"]
    for gauge in GAUGES:
        mean = sounding.mean(gauge)
        ends = ((mean.min(), mean.idxmin()), (mean.max(), mean.idxmax()))
        cells += [f"{value:.1f} (`{site}`)" for value, site in ends] + [f"{mean.iloc[-1]:.1f}"]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the soundings, draw them, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("soundings", nargs="+", metavar="NAME=FILE", help="what fathometer measure wrote")
    parser.add_argument("--out", type=Path, default=Path("intrinsic-dimension.png"))
    options = parser.parse_args(arguments)
    soundings = {name: load(path) for name, _, path in (part.partition("=") for part in options.soundings)}
    save_figure(picture(soundings), options.out)
    print("| network | accuracy, % |" + " smallest | largest | last |" * len(GAUGES))
    print("|" + "---|" * (2 + 3 * len(GAUGES)))
    for name, sounding in soundings.items():
        print(row(name, sounding))


if __name__ == "__main__":
    main()
