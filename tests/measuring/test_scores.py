from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.metrics import accuracy_score, log_loss, top_k_accuracy_score
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from fathometer import InputError, Sounding, load, measure
from fathometer.data import open_data
from fathometer.models import load_model
from fathometer.report.page.sounding import sounding_page

CLASSES = 12


class Net(nn.Module):
    """Returns logits in the form that was asked for."""

    def __init__(self, form: Callable[[Tensor], Any] = lambda logits: logits, classes: int = CLASSES) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.inner = nn.Linear(6, 40)
        self.outer = nn.Linear(40, classes)
        for parameter in self.parameters():
            parameter.data = 0.3 * torch.randn(parameter.shape, generator=generator)
        self.form = form

    def forward(self, x: Tensor) -> Any:
        return self.form(self.outer(torch.relu(self.inner(x))))


def labelled(count: int = 250, classes: int = CLASSES) -> tuple[Tensor, Tensor]:
    """Inputs, and labels that are often right."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(count, 6, generator=generator)
    noise = torch.randint(classes, (count,), generator=generator)
    with torch.no_grad():
        right = Net(classes=classes)(x).argmax(1)
    return x, torch.where(torch.rand(count, generator=generator) < 0.7, right, noise)


def sounding_of(x: Tensor, y: Any, net: nn.Module | None = None, **options: Any) -> Sounding:
    items = [(x[i : i + 40], y[i : i + 40]) for i in range(0, len(x), 40)]
    return measure(net or Net(), items, samples=100, gauges="affinity", **options)


@pytest.mark.parametrize(
    "form",
    [
        lambda logits: logits,
        lambda logits: (logits, "features"),
        lambda logits: {"logits": logits},
        lambda logits: SimpleNamespace(logits=logits, hidden=None),
        lambda logits: logits.double(),
    ],
)
def test_accuracy_and_loss_are_those_of_scikit_learn(form: Callable[[Tensor], Any]) -> None:
    x, y = labelled()
    with torch.no_grad():
        share = Net()(x[:200]).double().softmax(1).numpy()
    everything, target = list(range(CLASSES)), y[:200].numpy()
    for found in (
        sounding_of(x, y, Net(form)),
        sounding_of(x, y.to(torch.uint8), Net(form), batch_size=7),
        measure(Net(form), [{"x": x, "label": y.numpy()}], samples=100, gauges="affinity"),
    ):
        assert found.accuracy == accuracy_score(target, share.argmax(1))
        assert found.loss == pytest.approx(log_loss(target, share, labels=everything), rel=1e-5)
        top5 = top_k_accuracy_score(target, share, k=5, labels=everything)
        assert found.provenance.data["outcome"]["top5"] == top5
        numbers = f"accuracy {found.accuracy:.3f}, top-5 {top5:.3f}, loss {found.loss:.3f}"
        expected = f"{numbers} on 200 labelled samples"
        assert found.outcome == expected
        assert expected in repr(found)
        assert expected in found._repr_html_()
        assert expected in sounding_page(found).lead


def test_a_few_classes_have_no_top5_and_files_keep_the_outcome(tmp_path: Path) -> None:
    x, y = labelled(classes=3)
    found = sounding_of(x, y, Net(classes=3))
    assert set(found.provenance.data["outcome"]) == {"accuracy", "classes", "loss"}
    again = load(found.save(tmp_path / "a.json"))
    assert (again.accuracy, again.loss, again.outcome) == (found.accuracy, found.loss, found.outcome)
    without = {name: entry for name, entry in found.provenance.data.items() if name != "outcome"}
    before = dataclasses.replace(found.provenance, data=without)
    assert before.fingerprint() == found.provenance.fingerprint()
    assert Sounding(found.sites, found.records, before).outcome == ""


@pytest.mark.parametrize(
    ("labels", "outcome"),
    [
        (lambda y: y % 5, "no accuracy: the labels end at 4, but the network has 12 outputs"),
        (lambda y: y + 1, "no accuracy: the labels go from 1 to 12, but the outputs from 0 to 11"),
        (lambda y: y - 1, "no accuracy: the labels go from -1 to 10, but the outputs from 0 to 11"),
        (lambda y: torch.where(y == 3, -100, y), "no accuracy: the labels go from -100 to 11, but"),
        (lambda y: y.float(), "no accuracy: labels must be whole numbers, got torch.float32"),
        (lambda y: y[:, None], ""),
        (lambda y: torch.nn.functional.one_hot(y), ""),
        (lambda y: ["cat"] * len(y), ""),
    ],
)
def test_labels_that_are_no_outputs_give_no_accuracy(labels: Callable[[Tensor], Any], outcome: str) -> None:
    x, y = labelled()
    found = sounding_of(x, labels(y))
    assert found.accuracy is found.loss is None
    assert found.outcome.startswith(outcome)
    assert bool(found.outcome) == bool(outcome)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_loss_of_probabilities_is_that_of_scikit_learn(dtype: torch.dtype) -> None:
    x, y = labelled()
    with torch.no_grad():
        share = Net()(x[:200]).softmax(1).to(dtype).double().numpy()
    found = sounding_of(x, y, Net(lambda logits: logits.softmax(1).to(dtype)))
    expected = log_loss(y[:200].numpy(), share / share.sum(1, keepdims=True), labels=list(range(CLASSES)))
    assert found.loss == pytest.approx(expected, rel=1e-5 if dtype != torch.bfloat16 else 1e-2)
    assert found.accuracy == accuracy_score(y[:200].numpy(), share.argmax(1))
    logs = sounding_of(x, y, Net(lambda logits: logits.log_softmax(1).to(dtype)))
    assert logs.loss == pytest.approx(expected, rel=1e-5 if dtype != torch.bfloat16 else 1e-2)


def test_a_wrong_number_of_labels_gives_the_reason() -> None:
    x, y = labelled()
    found = measure(Net(), [(x, y[:100])], samples=100, gauges="affinity")
    assert found.accuracy is None
    assert found.outcome == "no accuracy: a batch of 250 inputs has 100 labels"


def test_samples_without_labels_give_no_accuracy_of_a_part() -> None:
    x, y = labelled(200)
    items: list[Any] = [(x[:100], y[:100]), x[100:]]
    assert measure(Net(), items, samples=100, gauges="affinity").outcome == ""
    assert measure(Net(), items[:1], samples=100, gauges="affinity").accuracy is not None


def test_a_resumed_measurement_has_the_accuracy_of_all_samples(tmp_path: Path) -> None:
    x, y = labelled()
    whole, journal = sounding_of(x, y), tmp_path / "journal"
    first = sounding_of(x, y, batches=1, journal=journal)
    assert first.accuracy != whole.accuracy
    resumed = sounding_of(x, y, journal=journal)
    assert resumed.outcome == whole.outcome
    lines = journal.read_text().splitlines(keepends=True)
    older = [line.replace('"scores"', '"other"') for line in lines[:2]]
    journal.write_text("".join(older))
    assert sounding_of(x, y, journal=journal).outcome == ""  # the first batch was not scored


class Named(Dataset[Any]):
    """Labels with names, as the data sets of torchvision have them."""

    def __init__(self, classes: list[Any]) -> None:
        self.classes = classes
        self._items = TensorDataset(*labelled())

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Any:
        return self._items[index]


def test_classes_of_a_data_set_must_be_as_many_as_the_outputs() -> None:
    x, y = labelled()
    same = measure(Net(), DataLoader(Named([("cat", "tabby")] * CLASSES), 50), samples=250, gauges="affinity")
    assert same.accuracy == float((Net()(x).argmax(1) == y).double().mean())
    other = measure(Net(), Named(["cat", "dog", "cow", "hen"]), samples=100, gauges="affinity")
    expected = "the classes of the data (cat, dog, cow and 1 more) are not the 12 of the network"
    assert other.outcome.endswith(expected)


@pytest.fixture
def photos(tmp_path: Path) -> Callable[..., Path]:
    def make(*classes: str) -> Path:
        generator = np.random.default_rng(0)
        for name in classes:
            (tmp_path / "photos" / name).mkdir(parents=True)
            for number in range(4):
                pixels = generator.integers(0, 256, (64, 64, 3), np.uint8)
                Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{number}.png")
        return tmp_path / "photos"

    return make


@pytest.mark.parametrize(
    "names", [("n01440764", "n01443537", "n02123045"), ("Tench", "goldfish", "tiger_cat")]
)
def test_folders_with_the_names_of_classes_find_their_outputs(names: tuple[str, ...], photos: Any) -> None:
    model = dataclasses.replace(load_model("torchvision:squeezenet1_1", "none", seed=0), weights="trained")
    indices = [0, 1, 282 if "tiger_cat" in names else 281]
    bias = model.module.get_parameter("classifier.1.bias")
    bias.data[indices[2]] += 100
    data = open_data(photos(*names), model.inputs, shuffle=False)
    found = measure(model, data, samples=12, gauges="affinity")
    assert found.accuracy == 1 / 3
    with torch.no_grad():
        logits = torch.cat([model.module(batch[0]) for batch in data if isinstance(batch, tuple)])
    target = torch.tensor(indices).repeat_interleave(4)
    assert found.loss == pytest.approx(float(torch.nn.functional.cross_entropy(logits, target)), rel=1e-5)


def test_a_table_with_wnids_finds_the_outputs_of_a_few_classes(photos: Any) -> None:
    model = dataclasses.replace(load_model("torchvision:squeezenet1_1", "none", seed=0), weights="trained")
    folder = photos("a", "b", "c")
    model.module.get_parameter("classifier.1.bias").data[1] += 100
    classes = {"a": ("n01440764", 0), "b": ("n01443537", 1), "c": ("n01491361", 3)}
    rows = [f"{name}/{i}.png,{wnid},{place}" for name, (wnid, place) in classes.items() for i in range(4)]
    (folder / "labels.csv").write_text("\n".join(["file,wnid,class_index", *rows]))
    data = open_data(folder, model.inputs)
    assert measure(model, data, samples=12, gauges="affinity").accuracy == 1 / 3
    by_class = measure(model, data, samples=4, gauges="affinity", by="class")
    assert {label: sounding.accuracy for label, sounding in by_class.items()} == {
        "n01440764": 0,
        "n01443537": 1,
        "n01491361": 0,
    }
    unknown = measure(model.module, data, samples=12, gauges="affinity")
    assert unknown.outcome == "no accuracy: the labels end at 3, but the network has 1000 outputs"


def test_folders_with_other_names_have_no_accuracy(photos: Any) -> None:
    model = dataclasses.replace(load_model("torchvision:squeezenet1_1", "none", seed=0), weights="trained")
    found = measure(model, open_data(photos("cats", "crane"), model.inputs), samples=8, gauges="affinity")
    assert found.outcome.endswith("the classes of the data (cats, crane) are not the 1000 of the network")


def test_gauges_get_the_labels_of_the_samples() -> None:
    x, y = labelled()

    def with_labels(x: Tensor, y: Tensor, *, labels: Tensor) -> dict[str, float]:
        del y
        return {"sum": float(labels.sum()), "first": float(x[labels == labels[0]].mean())}

    def plain(x: Tensor, y: Tensor) -> float:
        return float((x - y).abs().max())

    for size in (None, 7):
        items = [(x[i : i + 40], y[i : i + 40]) for i in range(0, len(x), 40)]
        found = measure(Net(), items, samples=100, gauges=[with_labels, plain], batch_size=size)
        assert found.records["with_labels_sum"].to_list() == [y[:100].sum(), y[100:200].sum()]
        first = Net().inner(x[:100])[y[:100] == y[0]].mean().item()
        assert found.records["with_labels_first"][0] == pytest.approx(first, rel=1e-5)
    for data in (x, [(x, y - 100)], [(x, y.float())]):
        with pytest.warns(UserWarning, match="not measured, since .* no label for each sample: with_labels"):
            assert measure(Net(), data, samples=100, gauges=[with_labels, plain]).gauges == ["plain"]
    with pytest.raises(InputError, match="with_labels: expected data with a label for each sample, got none"):
        measure(Net(), x, samples=100, gauges=with_labels)


class Routed(nn.Module):
    """Sends each input twice through a second layer: its rows are not those of the inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.first(x))
        chosen = torch.randint(len(x), (2 * len(x),))
        return torch.tanh(self.second(x[chosen]))


def test_sites_with_other_rows_than_the_inputs_get_no_labels() -> None:
    def count(x: Tensor, y: Tensor, *, labels: Tensor) -> float:
        del x, y
        return float(len(labels))

    found = measure(Routed(), [labelled()], samples=100, gauges=["affinity", count], batch_size=30)
    assert found.mean("count").isna().to_list() == [False, True]
