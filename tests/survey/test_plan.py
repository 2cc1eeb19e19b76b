from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fathometer import InputError
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
        ("models = 1\nx = = 2", "plan: not TOML: .*at line 2"),
        ("modles = 3", "plan, line 1: unknown key 'modles'; did you mean models"),
        ("", r"plan: no data and no models; expected \[data\] with .*, and models = "),
        (MODELS, r"plan: no data; expected \[data\] with photos"),
        (HEAD + DATA, "plan: no models; expected models = "),
        (HEAD + DATA + "[families]\n", "no models"),
        (HEAD + MODELS + "[data]\n", "line 3: no data"),
        (HEAD + MODELS + '[data]\n\nx = "rnadom:3"', "line 5: x: 'rnadom:3': no such file or folder"),
        (HEAD + MODELS + '[data]\nx = "random:many"', "line 4: x: random:many: expected the number"),
        (HEAD + MODELS + "[data]\nx = 3", "line 4: x: expected a path"),
        (
            HEAD + 'models = ["torchvision:alexnet",\n  "torchvision:resnet19"]\n' + DATA,
            "line 3: .*did you mean resnet18",
        ),
        (HEAD + 'models = "torchvision:rasnet*"\n' + DATA, "line 2: .*matches no model; did you mean"),
        (HEAD + 'models = "torchvison:alexnet"\n' + DATA, "line 2: .*no source; did you mean torchvision"),
        (HEAD + 'models = "alexnet"\n' + DATA, "line 2: .*expected SOURCE:NAME; did you mean torchvision:a"),
        (HEAD + 'models = "tests.survey.nets:smal"\n' + DATA, "line 2: .*did you mean small"),
        (HEAD + 'models = "tests.survey.nets:zzz"\n' + DATA, "line 2: .*has no 'zzz'; it has Noted, small, "),
        (HEAD + 'models = "no.such.module:f"\n' + DATA, "line 2: .*importing no.such.module failed"),
        (HEAD + 'models = "onnx:no.onnx"\n' + DATA, "line 2: .*no such file or folder"),
        (HEAD + "models = []\n" + DATA, "line 2: models: expected at least one"),
        ('weights = "nine"\n' + MODELS + DATA, "line 1: weights: 'nine' .*did you mean none"),
        (
            ALL + '[settings]\nsamples = 8\nguages = "cka"',
            "line 7: unknown key 'guages' in .settings.; did you mean gau",
        ),
        (ALL + '[settings]\ngauges = ["cka",\n\n "afinity"]', "line 8: gauges: .*did you mean affinity"),
        (ALL + "[settings]\nsamples = 1", "line 6: samples: expected a whole number from 2, got 1"),
        (ALL + "[settings]\nsamples = true", "line 6: samples: expected a whole number"),
        (ALL + '[settings]\nreduction = "maen"', "line 6: reduction: .*did you mean mean"),
        (ALL + "[settings]\nstrict = 1", "line 6: strict: expected true or false"),
        (ALL + "[settings]\nsamples = 8\n[settings.a]\n", "line 6: samples: stands beside"),
        (ALL + "[run]\ngpu = 1", "line 6: unknown key 'gpu' in .run.; did you mean gpus"),
        (ALL + "[run]\ngpus = 1.5", "line 6: gpus: expected a whole number, or a part of one GPU, got 1.5"),
        (ALL + '[run]\ndevice = "cudda"', "line 6: device: expected auto or .*did you mean cuda"),
        (
            HEAD + 'models = "torchvision:alexnet.foo"\n' + DATA,
            "line 2: .*alexnet.foo: there is no such model; did you mean alexnet",
        ),
        (
            HEAD + 'models = ["timm:resnet18", "timm:resnet18.nosuchtag"]\n' + DATA,
            "line 2: .*resnet18.nosuchtag: there is no such model; (did you mean|fathometer models)",
        ),
        (
            HEAD + 'models = "timm:resnet18.fb_swsl_ig1b_ft_in1"\n' + DATA,
            "line 2: .*did you mean resnet18.fb_swsl_ig1b_ft_in1k",
        ),
        (ALL + "[run]\nmemory = -1", "line 6: memory: expected a number from 0"),
        (HEAD + "seeds = [1, -2]\n" + MODELS + DATA, "line 2: seeds: expected whole numbers from 0, got -2"),
        (
            HEAD + "seeds = 3\n" + MODELS + DATA,
            r"line 2: seeds: expected a list .*\[0\] or \[0, 1, 2\], got 3",
        ),
        (ALL + "[families.A]\nmodel = 3", "line 6: unknown key 'model' in .families.A."),
        (ALL + "[families]\nA = 3", "line 6: A: expected a table"),
        (
            ALL + '[families.A]\nmodels = "torchvision:alex*"',
            "line 6: torchvision:alexnet is in models already",
        ),
        (
            ALL + '[families.A]\nmodels = "torchvision:vgg11"\nwithout = "vgg"',
            "line 7: without: 'vgg' matches none",
        ),
        (ALL + '[facts."torchvision:alexnet"]\naccuracy = "high"', "line 6: accuracy: expected a number"),
        (ALL + "[facts.x]\naccuracy = 1", "line 5: unknown key 'x' in .facts."),
    ],
)
def test_a_plan_that_cannot_be_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_plan(text)


def test_names_with_tags_and_parts_of_a_gpu() -> None:
    text = (
        ALL.replace("torchvision:alexnet", "timm:resnet18.a1_in1k") + '[run]\ngpus = 0.5\ndevice = "cuda:1"'
    )
    (family,) = parse_plan(text).families
    assert [member.model for member in family.members] == ["timm:resnet18.a1_in1k"]
    assert (family.run.gpus, family.run.device) == (0.5, "cuda:1")


def test_a_file_that_is_no_plan(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.toml: cannot be read"):
        read_plan(tmp_path / "no.toml")
    (tmp_path / "plan.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="expected a plan in TOML"):
        read_plan(tmp_path / "plan.toml")
    with pytest.raises(InputError, match="not TOML"):
        parse_plan(f"seeds = {'[' * 5000}{']' * 5000}")


def test_names_that_no_file_system_takes() -> None:
    long = "x" * 5000
    for text, message in (
        (f'models = "torchvision:alexnet"\n[data]\na = "{long}"', "no such file or folder"),
        (f'models = "onnx:{long}"\n[data]\na = "random:9"', "no such file or folder"),
        (f'models = "torchvision:alexnet"\nweights = "{long}"\n[data]\na = "random:9"', "no such file"),
    ):
        with pytest.raises(InputError, match=message):
            parse_plan(text)


def test_paths_are_relative_to_the_plan(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    torch.save({}, tmp_path / "small.pt")
    text = 'models = "tests.survey.nets:small"\nweights = "{name}.pt"\n[data]\nphotos = "photos"\n'
    (tmp_path / "plan.toml").write_text(text)
    (task,) = tasks_of(read_plan(tmp_path / "plan.toml"))
    assert task.data == str(tmp_path / "photos")
    assert (task.member.weights, task.member.weights_source) == ("small.pt", str(tmp_path / "small.pt"))
    (tmp_path / "plan.toml").write_text(text.replace('"photos"', '"fotos"'))
    with pytest.raises(InputError, match=r"plan\.toml, line 4: photos: 'fotos': .*did you mean photos"):
        read_plan(tmp_path / "plan.toml")


def test_a_preview_does_without_data(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="line 2: imagenet: 'val': no such .*; all soundings on it count as"):
        plan = parse_plan(
            '[data]\nimagenet = "val"\nnoise = "random:10"\n' + "[families.A]\n" + MODELS, preview=True
        )
    assert plan.missing == ("imagenet",)
    assert len(tasks_of(plan)) == 2
    with pytest.raises(InputError, match=r"\[data\] imagenet: val: no such file or folder"):
        run_survey(plan, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_the_paper(tmp_path: Path) -> None:
    (tmp_path / "val").mkdir()
    plan = parse_plan(paper_plan("val"), tmp_path)
    tasks = tasks_of(plan)
    assert len(tasks) == 36
    assert {task.settings.samples for task in tasks} == {512}
    assert all({"accuracy", "parameters", "gflops"} <= set(task.facts) for task in tasks)
    facts = {task.member.model: task.facts for task in tasks}
    assert facts["torchvision:resnet50"] == {
        "parameters": 25557032,
        "gflops": 4.089,
        "accuracy": 80.858,
        "year": 2015,
    }
    assert [family.name for family in plan.families][:3] == ["AlexNet", "VGG", "Inception"]
