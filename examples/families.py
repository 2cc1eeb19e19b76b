"""Measures torchvision's networks with random weights, family by family, for `fathometer compare`.

    python -m examples.families --data IMAGES --out soundings
    fathometer compare networks soundings --draws 100 --out compared

No network is trained: the signatures differ by architecture and initialisation alone. This is a survey: its
plan is written next to the soundings, and soundings that exist are kept.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from fathometer.survey import Event, read_plan, run_survey

FAMILIES = {
    "AlexNet": ("alexnet",),
    "SqueezeNet": ("squeezenet1_0", "squeezenet1_1"),
    "MNASNet": ("mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3"),
    "MobileNet": ("mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large"),
    "ShuffleNet": ("shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5"),
    "RegNet": ("regnet_x_400mf", "regnet_x_800mf", "regnet_x_1_6gf"),
    "Inception": ("googlenet", "inception_v3"),
    "EfficientNet": ("efficientnet_b0", "efficientnet_b1", "efficientnet_b2"),
    "ResNet": ("resnet18", "resnet34", "resnet50", "resnet101"),
    "DenseNet": ("densenet121", "densenet169", "densenet201"),
    "ConvNeXt": ("convnext_tiny", "convnext_small"),
    "Swin": ("swin_t", "swin_s"),
    "ViT": ("vit_b_32", "vit_b_16", "vit_l_32"),
    "VGG": ("vgg11", "vgg13", "vgg16"),
}


def plan_of(families: Sequence[str], data: str, samples: int, batches: int) -> str:
    """The plan as TOML."""
    parts = [
        'weights = "none"',
        f"[data]\nimages = {json.dumps(data)}",
        f"[settings]\nsamples = {samples}\nbatches = {batches}",
        "[run]\nbatch_size = 16",
    ]
    for family in families:
        models = [f"torchvision:{name}" for name in FAMILIES[family]]
        parts.append(f"[families.{family}]\nmodels = {json.dumps(models)}")
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the plan, and measure what is not there yet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="random:192", help="a folder of images, or random:N")
    parser.add_argument("--out", type=Path, default=Path("soundings"))
    parser.add_argument("--samples", type=int, default=64, help="in a measured batch")
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=list(FAMILIES), help="these families")
    options = parser.parse_args(arguments)
    data = options.data if options.data.startswith("random") else str(Path(options.data).resolve())
    options.out.mkdir(parents=True, exist_ok=True)
    plan = options.out / "plan.toml"
    plan.write_text(plan_of(options.only, data, options.samples, options.batches), "utf-8")
    outcome = run_survey(read_plan(plan), options.out, on_event=_tell)
    print(f"{len(outcome.measured)} measured, {len(outcome.kept)} kept, {len(outcome.failed)} failed")


def _tell(event: Event) -> None:
    if event.state in ("measured", "failed"):
        print(event.task.title, event.state, event.message or f"in {event.seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
