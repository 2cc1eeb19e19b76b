from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from fathometer import InputError, Sounding, measure
from fathometer.data import Inputs, open_data
from fathometer.measuring.journal import JournalError
from tests.data_sources.making import IMAGES, cifar_records, class_folders


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 8), nn.Tanh(), nn.Linear(8, 3)).double()


def labelled(count: int = 400) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(count, 6, generator=generator, dtype=torch.float64)
    return x, torch.randint(3, (count,), generator=generator)


def batches(x: Tensor, y: Any, size: int = 30) -> list[Any]:
    return [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]


def assert_same(one: Sounding, other: Sounding) -> None:
    pd.testing.assert_frame_equal(one.records, other.records, rtol=1e-5)


@pytest.mark.parametrize("leftover", ["drop", "keep"])
@pytest.mark.parametrize("batch_size", [None, 13])
def test_each_label_is_measured_as_if_by_itself(leftover: str, batch_size: int | None) -> None:
    x, y = labelled()
    options: Any = {"samples": 50, "leftover": leftover, "batch_size": batch_size}
    found = measure(network(), batches(x, y), by="class", **options)
    assert list(found) == ["0", "1", "2"]
    assert sum(len(s.records) for s in found.values()) >= 3 * 2 * 2
    for label, sounding in found.items():
        own = y == int(label)
        alone = measure(network(), batches(x[own], y[own]), **options)
        assert_same(sounding, alone)
        count = sounding.provenance.data["samples_measured"]
        right = network()(x[own][:count]).argmax(1) == int(label)
        assert sounding.accuracy == float(right.double().mean())
        data = sounding.provenance.data
        assert (data["label"], data["name"]) == (label, f"list: {label}")
        assert data["samples_measured"] == alone.provenance.data["samples_measured"]
        assert data["samples_left_over"] == alone.provenance.data["samples_left_over"]
        assert sounding.provenance.settings["by"] == "class"
    assert len({sounding.provenance.fingerprint() for sounding in found.values()}) == 3


def test_what_data_are_split_by() -> None:
    x, y = labelled(200)
    names = [f"site {label}" for label in y.tolist()]
    items = [
        {"input": x[i : i + 40], "hospital": names[i : i + 40], "label": y[i : i + 40]}
        for i in range(0, 200, 40)
    ]
    options: Any = {"samples": 40, "gauges": "affinity"}
    by_class = measure(network(), items, by="label", **options)
    by_entry = measure(network(), items, by="hospital", **options)
    by_sign = measure(network(), batches(x, y), by=lambda batch: batch[0][:, 0] > 0, **options)
    as_text = measure(network(), batches(x, names), by="class", **options)
    assert list(by_class) == ["0", "1", "2"]
    assert list(by_entry) == list(as_text) == ["site 0", "site 1", "site 2"]
    assert list(by_sign) == ["False", "True"]
    for label in "012":
        assert_same(by_class[label], by_entry[f"site {label}"])
    settings = by_sign["True"].provenance.settings["by"]
    assert set(settings) == {"function", "code"}


def test_texts_of_different_lengths() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Embedding(50, 8), nn.ReLU())
    items = [{"input": torch.randint(50, (10, length)), "topic": ["a", "b"] * 5} for length in (4, 7, 4, 5)]
    found = measure(
        net, items, by="topic", samples=20, reduction="tokens", gauges="affinity", leftover="keep"
    )
    assert {s.provenance.data["samples_measured"] for s in found.values()} == {20}
    assert all(s.records["n"].to_list() == [20, 20, 20, 20, 15] for s in found.values())


def test_labels_with_too_few_samples_are_named() -> None:
    x, y = labelled(200)
    y[:3] = 7
    options: Any = {"samples": 50, "gauges": "affinity", "by": "class"}
    with pytest.warns(UserWarning, match=r"at least 50 samples of each label, got label 7: 3 inputs; these"):
        assert list(measure(network(), batches(x, y), **options)) == ["0", "1", "2"]
    with pytest.raises(
        InputError, match=r"data: expected at least 500 samples of each label, got label 7: 3 inputs, "
    ):
        measure(network(), batches(x, y), **options | {"samples": 500})
    wrong: list[tuple[Any, Any, str]] = [
        ([x], "class", r"by: expected batches \(inputs, labels\), or dicts with labels, got .* Tensor"),
        (batches(x, y), "topic", "by: expected dicts with an entry 'topic', got batches of type tuple"),
        ([{"x": x}], "topic", "got batches of type dict with the entries x"),
        (batches(x, y), lambda batch: batch[1][:2], "expected 30 labels for a batch of 30 inputs, got"),
        (batches(x, y), 3, "by: expected 'class', the name of an entry"),
    ]
    for data, by, message in wrong:
        with pytest.raises(InputError, match=message):
            measure(network(), data, samples=20, by=by)


def test_a_split_measurement_resumes(tmp_path: Path) -> None:
    x, y = labelled()
    options: Any = {"samples": 50, "gauges": "affinity", "by": "class"}
    whole, journal = measure(network(), batches(x, y), **options), tmp_path / "journal"
    measure(network(), batches(x, y), journal=journal, **options)
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:4]))
    resumed = measure(network(), batches(x, y), journal=journal, **options)
    for label, sounding in resumed.items():
        assert_same(sounding, whole[label])
    with pytest.raises(JournalError, match="other by"):
        measure(network(), batches(x, y), journal=journal, samples=50, gauges="affinity")
    first, second = json.loads(lines[1]), json.loads(lines[2])
    swapped = [lines[0], json.dumps(second | {"batch": 0}) + "\n", json.dumps(first | {"batch": 1}) + "\n"]
    journal.write_text("".join(swapped))
    with pytest.raises(JournalError, match="another sequence of labels"):
        measure(network(), batches(x, y), journal=journal, **options)


def test_fewer_batches_than_the_journal_has(tmp_path: Path) -> None:
    x, y = labelled()[0], torch.arange(400) % 2
    options: Any = {"samples": 50, "gauges": "affinity", "by": "class"}
    measure(network(), batches(x, y), batches=2, journal=tmp_path / "journal", **options)
    fewer = measure(network(), batches(x, y), batches=1, journal=tmp_path / "journal", **options)
    for label, alone in measure(network(), batches(x, y), batches=1, **options).items():
        assert_same(fewer[label], alone)
        assert fewer[label].outcome == alone.outcome


def test_a_label_with_too_few_samples_for_a_map_is_left_out() -> None:
    x, y = labelled(100)
    y[:3], y[3:] = 2, torch.arange(97) % 2
    options: Any = {"samples": 23, "gauges": "affinity", "leftover": "keep", "map": "cka"}
    with pytest.warns(UserWarning, match=r"at least 4 samples of each label, got label 2: 3 inputs; these"):
        found = measure(network(), batches(x, y), by="class", **options)
    assert {label: s.records["n"].unique().tolist() for label, s in found.items()} == {
        "0": [23, 3],
        "1": [23, 2],
    }
    assert all(sounding.map is not None for sounding in found.values())


def test_classes_of_one_name_stay_apart() -> None:
    class Birds(TensorDataset):
        classes = (("crane",), ("heron", "egret"), ("crane",))

    found = measure(network(), Birds(*labelled(200)), by="class", samples=40, gauges="affinity")
    assert list(found) == ["crane (0)", "heron, egret", "crane (2)"]


def test_unreadable_images_of_all_labels_are_named(tmp_path: Path) -> None:
    folder = class_folders(tmp_path / "insects")
    (folder / "ant" / "broken.jpg").write_bytes(b"no image")
    (folder / "wasp").mkdir()
    (folder / "wasp" / "empty.png").touch()
    net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU())
    data = open_data(folder, IMAGES, batch_size=4, keep_bytes=2**20)
    found = measure(net, data, by="class", samples=5, gauges="norm")
    assert data.skipped == ["ant/broken.jpg", "wasp/empty.png"]
    assert {s.provenance.data["skipped"] for s in found.values()} == {2}
    same = measure(net, open_data(folder, IMAGES), by="class", samples=5, gauges="norm")
    assert list(found) == list(same)
    for label, sounding in found.items():
        assert_same(sounding, same[label])


def test_opened_data_are_read_label_by_label(tmp_path: Path) -> None:
    (tmp_path / "test_batch.bin").write_bytes(cifar_records(60))
    names = "airplane automobile bird cat deer dog frog horse ship truck"
    (tmp_path / "batches.meta.txt").write_text(names.replace(" ", "\n"))
    data = open_data(tmp_path, Inputs("image", (3, 32, 32)), batch_size=8)
    parts = data.by_label()
    for number, part in enumerate(parts):
        assert {label for batch in part if isinstance(batch, tuple) for label in batch[1].tolist()} == {
            number
        }
    assert len(parts) == 10
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    found = measure(net, data, by="class", samples=6, gauges="norm")
    assert list(found) == names.split()
    assert found["cat"].provenance.data["name"].endswith(": cat")
    x, y = map(torch.cat, zip(*data, strict=True))
    same = measure(net, [(x, y)], by="class", samples=6, gauges="norm")
    for number, sounding in enumerate(found.values()):
        assert_same(sounding, same[str(number)])


def test_no_more_is_read_of_a_label_than_its_batches_need(tmp_path: Path) -> None:
    (tmp_path / "test_batch.bin").write_bytes(cifar_records(60))
    seen = []

    def preprocess(image: Any) -> Tensor:
        seen.append(image)
        return torch.full((3, 4, 4), float(image.getpixel((0, 0))[0]))

    data = open_data(tmp_path, Inputs("image", (3, 4, 4), preprocess=preprocess), batch_size=2)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    found = measure(net, data, by="class", samples=4, batches=1, gauges="norm")
    assert [s.provenance.data["samples_measured"] for s in found.values()] == [4] * 10
    assert [s.provenance.data["samples_left_over"] for s in found.values()] == [0] * 10
    assert len(seen) == 40  # of 60
