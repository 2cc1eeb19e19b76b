from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fathometer import InputError
from fathometer.measuring.options import LoadOptions, options_of, plain_options
from fathometer.survey import paper_plan, parse_plan, read_plan, run_survey, tasks_of

HEAD = 'weights = "none"\n'
DATA = '[data]\nnoise = "random:10"\n'
MODELS = 'models = ["torchvision:alexnet"]\n'
ALL = HEAD + MODELS + DATA


def test_a_plan_is_a_product() -> None:
    plan = parse_plan(
        """
        seeds = [0, 3]
        weights = ["none", "IMAGENET1K_V1"]
        models = "torchvision:alexnet"
        [data]
        a = "random:10"
        b = "random:20"
        [settings.one]
        samples = 64
        [settings.two]
        samples = 128
        gauges = ["affinity", "tests.survey.nets:gap"]
        [run]
        threads = 2
        [families.ResNet]
        models = ["torchvision:resnet*", "torchvision:resnet18"]
        without = ["*resnet1?"]
        weights = "none"
        batch_size = 8
        """
    )
    loose, resnets = plan.families
    assert [member.model for member in resnets.members] == [
        f"torchvision:resnet{depth}" for depth in (34, 50, 101, 152)
    ]
    assert (loose.run.batch_size, resnets.run.batch_size, resnets.run.threads) == (32, 8, 2)
    assert len(plan) == len(tasks_of(plan)) == (2 + 4) * 2 * 2 * 2
    assert plan.settings["two"].gauges == ("affinity", "tests.survey.nets:gap")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models = [", "plan: not TOML: "),
        ("modles = 3", "plan: unknown key 'modles'; did you mean models"),
        (MODELS, r"plan: expected data"),
        (HEAD + MODELS + '[data]\n\nx = "rnadom:3"', r"\[data\]: x: 'rnadom:3': .*did you mean random"),
        (HEAD + 'models = ["torchvision:resnet19"]\n' + DATA, "plan: models: .*did you mean resnet18"),
        (HEAD + 'models = "torchvison:alexnet"\n' + DATA, "unknown source .*; did you mean torchvision"),
        (HEAD + 'models = "alexnet"\n' + DATA, "expected SOURCE:NAME; did you mean torchvision:alexnet"),
        (HEAD + 'models = "no.such.module:f"\n' + DATA, "importing no.such.module failed"),
        ('weights = "nine"\n' + MODELS + DATA, "weights: 'nine' .*did you mean none"),
        (ALL + '[settings]\nguages = "cka"', r"\[settings\]: unknown key 'guages'; did you mean gauges"),
        (ALL + '[settings]\nreduction = "maen"', r"\[settings\]: reduction: .*did you mean mean"),
        (ALL + "[settings]\nsamples = 8\n[settings.a]\n", r"samples stands beside \[settings.a\]"),
        (ALL + "[run]\ngpus = 1.5", r"\[run\]: gpus: expected a whole number or a fraction of one GPU"),
        (ALL + '[run]\ndevice = "cudda"', r"\[run\]: device: expected auto or .*did you mean cuda"),
        (HEAD + "seeds = [1, -2]\n" + MODELS + DATA, "plan: seeds.*Expected `int` >= 0"),
        (ALL + "[families.A]\nbatch_sise = 3", r"\[families.A\]: unknown key .*did you mean batch_size"),
        (ALL + '[families.A]\nmodels = "torchvision:alex*"', "torchvision:alexnet is in models already"),
        (ALL + '[facts."torchvision:alexnit"]\naccuracy = 1', r"unknown model .*did you mean torchvision:al"),
    ],
)
def test_mistakes_are_refused_with_section_and_key(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_plan(text)


def test_settings_are_the_options_of_measure() -> None:
    (settings,) = parse_plan(
        ALL + '[settings]\ngauges = ["standard", "tests.survey.nets:gap"]'
    ).settings.values()
    options = settings.options(seed=3)
    assert (options.samples, options.seed, options.reduction.seed) == (512, 3, 3)
    assert list(options.chosen_gauges)[-1] == "gap"
    names = (plain_options().keys() - {"seed"}) | options_of(LoadOptions).keys()
    assert settings.as_dict().keys() == names - {"map", "residual", "call"}  # left out unless they are given
    assert settings.changed(map="cka").options(seed=3).map == settings.changed(map="cka").as_dict()["map"]


def test_a_preset_of_a_plan_is_what_it_stands_for() -> None:
    (settings,) = parse_plan(ALL + '[settings]\npreset = "language"\nbatches = 1').settings.values()
    assert (settings.samples, settings.batches, settings.reduction) == (2048, 1, "tokens")
    assert "preset" not in settings.as_dict()


def test_addresses_of_version_0_1_are_found_again() -> None:
    text = ALL.replace("random:10", "random:600") + (
        '[settings]\nsamples = 8\ngauges = ["affinity", "cka"]\nreduction = "tokens"\nleftover = "keep"\n'
    )
    assert [task.address for task in tasks_of(parse_plan(text))] == ["120bd90829bc440c60636f54"]


def test_an_unreadable_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.toml: cannot be read"):
        read_plan(tmp_path / "no.toml")
    (tmp_path / "plan.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="expected a plan in TOML"):
        read_plan(tmp_path / "plan.toml")


def test_paths_are_relative_to_the_plan(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    torch.save({}, tmp_path / "small.pt")
    text = 'models = "tests.survey.nets:small"\nweights = "{name}.pt"\n[data]\nphotos = "photos"\n'
    (tmp_path / "plan.toml").write_text(text)
    (task,) = tasks_of(read_plan(tmp_path / "plan.toml"))
    assert task.data == str(tmp_path / "photos")
    assert (task.member.weights, task.member.weights_source) == ("small.pt", str(tmp_path / "small.pt"))
    (tmp_path / "plan.toml").write_text(text.replace('"photos"', '"fotos"'))
    with pytest.raises(InputError, match=r"plan\.toml, \[data\]: photos: 'fotos': .*did you mean photos"):
        read_plan(tmp_path / "plan.toml")


def test_a_preview_works_without_the_data(tmp_path: Path) -> None:
    with pytest.warns(
        UserWarning, match=r"\[data\]: imagenet: 'val': no such .*; all soundings on it count as"
    ):
        plan = parse_plan(
            '[data]\nimagenet = "val"\nnoise = "random:10"\n' + "[families.A]\n" + MODELS, preview=True
        )
    assert plan.missing == ("imagenet",)
    assert len(tasks_of(plan)) == 2
    with pytest.raises(InputError, match=r"\[data\] imagenet: .*val: no such file or folder"):
        run_survey(plan, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_the_plan_of_the_paper(tmp_path: Path) -> None:
    (tmp_path / "val").mkdir()
    plan = parse_plan(paper_plan("val"), tmp_path)
    tasks = tasks_of(plan)
    assert len(tasks) == 36
    assert {task.settings.samples for task in tasks} == {512}
    assert all({"accuracy", "parameters", "gflops"} <= set(task.facts) for task in tasks)
    facts = {task.member.model: task.facts for task in tasks}
    expected = {"parameters": 25557032, "gflops": 4.089, "accuracy": 80.858, "year": 2015}
    assert facts["torchvision:resnet50"] == expected
    assert [family.name for family in plan.families][:3] == ["AlexNet", "VGG", "Inception"]
