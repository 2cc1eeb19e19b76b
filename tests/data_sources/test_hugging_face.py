"""Data sets of Hugging Face: saved ones, parquet files, webdataset shards, and names on the hub."""

from __future__ import annotations

import io
import json
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn

from fathometer import measure
from fathometer.data import Inputs, open_data
from fathometer.data.hugging_face import load_split
from fathometer.data.opening import inspect_data, require_data
from fathometer.errors import InputError, MissingExtraError
from fathometer.models import LoadedModel
from fathometer.survey import parse_plan, tasks_of
from tests.data_sources.making import IMAGES, TENSOR, TOKENS, labels, save_image, tensors, values

datasets: Any = pytest.importorskip("datasets")

PIXELS = np.random.default_rng(0).integers(0, 256, (24, 8, 8, 3), np.uint8)
LABELS = [i % 3 for i in range(24)]
NAMES = ["ant", "bee", "cat"]
PNGS = []
for each in PIXELS:
    Image.fromarray(each).save(file := io.BytesIO(), "png")
    PNGS.append(file.getvalue())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of the library, without a network."""
    found = tmp_path / "cache"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", found)
    monkeypatch.setattr("fathometer.data.hugging_face._is_reachable", lambda _: False)
    return found


def rows(start: int = 0, stop: int = 24) -> Any:
    kinds = {"img": datasets.Image(), "label": datasets.ClassLabel(names=NAMES)}
    content = {"img": [{"bytes": png, "path": None} for png in PNGS[start:stop]], "label": LABELS[start:stop]}
    return datasets.Dataset.from_dict(content, datasets.Features(kinds))


def save(path: Path) -> Path:
    rows().save_to_disk(path)
    return path


def save_splits(path: Path) -> Path:
    datasets.DatasetDict(train=rows(0, 2), test=rows()).save_to_disk(path)
    return path


def parquet(path: Path) -> Path:
    rows().to_parquet(file := path.with_suffix(".parquet"))
    return file


def plain_parquet(path: Path) -> Path:
    """As pandas writes it: bytes, and whole numbers without names."""
    pd.DataFrame({"image": PNGS, "label": LABELS}).to_parquet(file := path.with_suffix(".parquet"))
    return file


def parquet_folder(path: Path) -> Path:
    path.mkdir()
    for i, start in enumerate((0, 12)):
        rows(start, start + 12).to_parquet(path / f"part [{i}].parquet")
    (path / "README.md").write_text("my images")
    return path


def parquet_splits(path: Path) -> Path:
    path.mkdir()
    rows(0, 2).to_parquet(path / "train-00000-of-00001.parquet")
    rows(0, 12).to_parquet(path / "test-00000-of-00002.parquet")
    rows(12, 24).to_parquet(path / "test-00001-of-00002.parquet")
    return path


def shard(path: Path, start: int = 0, stop: int = 24) -> Path:
    path = path.with_suffix(".tar")
    with tarfile.open(path, "w") as archive:
        for i in range(start, stop):
            for ending, content in (("png", PNGS[i]), ("cls", str(LABELS[i]).encode())):
                entry = tarfile.TarInfo(f"{i:03}.{ending}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return path


def shard_folder(path: Path) -> Path:
    path.mkdir()
    shard(path / "000", 0, 12)
    shard(path / "001", 12, 24)
    return path


def network() -> LoadedModel:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
    return LoadedModel(net, "mine", "none", Inputs("image", (3, 8, 8)))


OPTIONS: dict[str, Any] = {"samples": 20, "leftover": "keep", "seed": 1}
WRITERS = [save, save_splits, parquet, plain_parquet, parquet_folder, parquet_splits, shard, shard_folder]


@pytest.mark.parametrize("write", WRITERS)
def test_the_same_images_give_the_values_of_arrays(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    np.savez(tmp_path / "x.npz", x=PIXELS, y=LABELS)
    net = network()
    expected = measure(net, open_data(tmp_path / "x.npz", net.inputs, seed=1), **OPTIONS)
    path = write(tmp_path / "images")
    for workers in (0, 2):
        source = open_data(path, net.inputs, seed=1, workers=workers, batch_size=5)
        found = measure(net, source, **OPTIONS)
        pd.testing.assert_frame_equal(found.records, expected.records, rtol=1e-6)
        assert found.accuracy == expected.accuracy
    has_names = write not in (plain_parquet, shard, shard_folder)
    assert source.classes == (tuple(NAMES) if has_names else None)
    facts = source.description
    splits: dict[object, str] = {
        save_splits: "test",
        parquet_splits: "test",
        parquet_folder: "train",
        shard_folder: "train",
    }
    assert (facts["kind"], facts["name"], facts["split"]) == ("dataset", path.name, splits.get(write, ""))
    assert str(tmp_path) not in str(found.provenance)
    moved = tmp_path / "elsewhere" / path.name
    moved.parent.mkdir()
    shutil.move(path, moved)
    assert open_data(moved, net.inputs).description["sha256"] == facts["sha256"] == inspect_data(moved)[0]


def test_a_broken_image_is_skipped(tmp_path: Path) -> None:
    broken = [*PNGS[:3], PNGS[3][:60], None, b"", *PNGS[6:]]
    pd.DataFrame({"image": broken, "label": LABELS}).to_parquet(tmp_path / "a.parquet")
    for workers in (0, 2):
        source = open_data(tmp_path / "a.parquet", IMAGES, shuffle=False, workers=workers, batch_size=4)
        assert values(source) == [float(PIXELS[i, 0, 0, 0]) for i in range(24) if i not in (3, 4, 5)]
        assert source.skipped == ["row 3", "row 4", "row 5"]
    with pytest.raises(InputError, match=r"row 3: cannot be read"):
        values(open_data(tmp_path / "a.parquet", IMAGES, shuffle=False, strict=True))


@pytest.mark.parametrize("write", [save_splits, parquet_splits])
def test_a_split_is_named_after_a_colon(
    tmp_path: Path, write: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "images")
    monkeypatch.chdir(tmp_path)
    for split, count in (("train", 2), ("test", 24)):
        source = open_data(f"hf:./images:{split}", IMAGES)
        assert (len(source), source.description["split"]) == (count, split)
        located = require_data(f"hf:./images:{split}")
        assert located is not None
        assert open_data(located, IMAGES).description == source.description
    assert len({inspect_data(f"hf:{path}{split}")[0] for split in (":train", ":test", "")}) == 2
    with pytest.raises(InputError, match=r"expected one of the splits .*got tset; did you mean test"):
        open_data("hf:images:tset", IMAGES)
    if write is save_splits:
        datasets.DatasetDict(a=rows(0, 2), b=rows(2, 4)).save_to_disk("odd")
        with pytest.raises(InputError, match=r"one of the splits a, b, got none; give e\.g\. hf:odd:a"):
            open_data("odd", IMAGES)


def test_a_plan_finds_data_sets_beside_it_and_leaves_names_of_the_hub(tmp_path: Path) -> None:
    save_splits(tmp_path / "images")
    text = """
    models = "tests.survey.nets:small"
    weights = "none"
    [data]
    train = "hf:images:train"
    test = "hf:./images:test"
    default = "images"
    hub = "hf:ylecun/mnist:test"
    """
    plan = parse_plan(text, tmp_path)
    assert plan.data["test"] == f"hf:{tmp_path / 'images'}:test"
    assert plan.data["hub"] == "hf:ylecun/mnist:test"
    with pytest.warns(UserWarning, match="default is the same as .*test under another name"):
        tasks = tasks_of(plan)
    assert [task.data_name for task in tasks] == ["train", "test", "hub"]
    assert tasks[-1].key["data"] == {"name": "hf:ylecun/mnist:test"}
    with pytest.raises(InputError, match=r"\[data\]: train: 'hf:./gone:train': no such file or folder"):
        parse_plan(text.replace("hf:images", "hf:./gone"), tmp_path)


def test_texts_are_joined_and_read_as_a_text_file(tmp_path: Path) -> None:
    texts = ["deep calls", "unto deep", ""]
    (tmp_path / "a.txt").write_text("\n\n".join(texts))
    expected = torch.cat(tensors(open_data(tmp_path / "a.txt", TOKENS)))
    for name, column in (("text", "text"), ("content", "content"), ("verse", "verse")):
        pd.DataFrame({column: texts, "year": [1, 2, 3]}).to_parquet(path := tmp_path / f"{name}.parquet")
        source = open_data(path, TOKENS)
        assert torch.equal(torch.cat(tensors(source)), expected)
        assert source.description["column"] == column
    source = open_data(tmp_path / "text.parquet", TOKENS, length=7)
    assert (source.description["length"], source.description["labels"]) == (7, False)


def test_token_ids_are_read_without_their_padding(tmp_path: Path) -> None:
    ids = [[5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 0, 0]]
    masks = [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]]
    datasets.Dataset.from_dict({"input_ids": ids[:2]}).save_to_disk(tmp_path / "even")
    assert tensors(open_data(tmp_path / "even", TOKENS, shuffle=False))[0].tolist() == ids[:2]
    datasets.Dataset.from_dict({"input_ids": ids, "attention_mask": masks}).save_to_disk(tmp_path / "padded")
    (batch,) = open_data(tmp_path / "padded", TOKENS, shuffle=False)
    assert isinstance(batch, dict)
    assert batch["input_ids"][batch["attention_mask"].bool()].tolist() == list(range(5, 15))


def test_labels_are_those_of_a_known_name_or_of_the_only_classes(tmp_path: Path) -> None:
    def found(path: str, **more: Any) -> Any:
        data = rows(0, 4).rename_column("label", "species")
        for name, column in more.items():
            data = data.add_column(name, column)
        data.save_to_disk(tmp_path / path)
        return open_data(tmp_path / path, IMAGES, shuffle=False)

    only = found("only", height=[3, 4, 5, 6])
    assert (labels(only), only.classes) == (LABELS[:4], tuple(NAMES))
    named = found("named", fine_label=[3, 4, 5, 6])
    assert (labels(named), named.classes) == ([3, 4, 5, 6], None)
    assert found("secret", label=[-1] * 4).description["labels"] is False


def test_data_sets_in_memory(tmp_path: Path) -> None:
    net = network()
    rows().save_to_disk(tmp_path / "images")
    expected = measure(net, open_data(tmp_path / "images", net.inputs, seed=1), **OPTIONS)
    for data in (rows(), rows().with_format("torch")):
        found = measure(net, data, **OPTIONS)
        pd.testing.assert_frame_equal(found.records, expected.records)
        assert (found.provenance.data["fingerprint"], found.accuracy) == (
            data._fingerprint,
            expected.accuracy,
        )
    for message, wrong in (
        ("got a stream", rows().to_iterable_dataset()),
        ("expected one split, got a dict of a", datasets.DatasetDict(a=rows())),
        ("expected one column of images", rows().remove_columns("img")),
    ):
        with pytest.raises(InputError, match=message):
            measure(net, wrong, **OPTIONS)


def test_data_of_the_hub_are_taken_from_its_cache(tmp_path: Path) -> None:
    """Without a network, the library opens what it has prepared before; the fingerprint identifies it."""
    data = open_data(parquet_splits(tmp_path / "digits"), IMAGES)
    prepared = datasets.load_dataset(str(tmp_path / "digits"))
    found = open_data("hf:digits:train", IMAGES)
    assert (len(found), found.description["name"], found.description["split"]) == (2, "digits", "train")
    assert "sha256" in data.description
    assert "sha256" not in found.description
    assert found.description["fingerprint"] == prepared["train"]._fingerprint
    assert len(open_data("hf:digits", IMAGES)) == 24


def test_a_split_of_the_hub_is_loaded_without_the_others(tmp_path: Path, cache: Path) -> None:
    """A folder stands for the hub. What was loaded is found again without it, as fathometer's alone."""
    folder = parquet_splits(tmp_path / "digits")
    facts = {"size_in_bytes": 10**15, "splits": {"train": {"name": "train", "num_examples": 2}}}
    (folder / "dataset_infos.json").write_text(json.dumps({"default": facts}))
    (folder / "train-00000-of-00001.parquet").write_bytes(b"not one")
    found = load_split(str(folder), split="test")
    assert (len(found), str(found.split), found.features["label"].names) == (24, "test", NAMES)
    assert load_split(str(folder), split=None)._fingerprint == found._fingerprint
    shutil.rmtree(folder)
    for source in ("hf:digits:test", "hf:digits"):
        again = open_data(source, IMAGES)
        assert (len(again), again.description["fingerprint"]) == (24, found._fingerprint)
    with pytest.raises(InputError, match="digits: cannot be opened as a data set"):
        open_data("hf:digits:train", IMAGES)
    assert not list(cache.glob("digits/*/*/*/*.arrow"))  # where the library would miss the other splits


def test_a_configuration_follows_the_name_on_the_hub(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "verses"
    lines = ["---", "configs:"]
    for name in ("raw", "clean"):
        (folder / name).mkdir(parents=True)
        pd.DataFrame({"text": [f"{name} text"]}).to_parquet(folder / name / "a.parquet")
        lines += [f"- config_name: {name}", f"  data_files: {name}/*.parquet"]
    (folder / "README.md").write_text("\n".join([*lines, "---"]))
    with pytest.raises(InputError, match=r"Please pick one among the available configs: \['raw', 'clean'\]"):
        open_data(f"hf:{folder}", TOKENS)
    for name in ("raw", "clean"):
        datasets.load_dataset(str(folder), name)
    (cache / "verses").rename(cache / "someone___verses")
    (batch,) = open_data("hf:someone/verses/clean:train", TOKENS, shuffle=False)
    assert isinstance(batch, dict)
    assert bytes(batch["input_ids"].flatten().tolist()).decode().startswith("clean te")
    with pytest.raises(InputError, match="configurations in the cache: clean, raw"):
        open_data("hf:someone/verses", TOKENS)


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("two.parquet", IMAGES, "expected one column of images .*got img and png among img, png"),
        (
            "numbers.parquet",
            IMAGES,
            "expected one column of images .*got none among x, y; rename",
        ),
        ("numbers.parquet", TOKENS, r"column of token ids \(input_ids\) or texts .* got none among x, y"),
        ("paths.parquet", IMAGES, "expected one column of images .*got none among image;"),
        ("numbers.parquet", TENSOR, r"takes tensors of shape \[5\]"),
        ("floats.parquet", TOKENS, "expected whole numbers of shape .*got float32"),
        ("broken.parquet", IMAGES, r"broken.parquet: cannot be opened as a data set \("),
        ("broken.tar", IMAGES, r"broken.tar: cannot be opened as a data set \("),
        ("empty.parquet", IMAGES, "empty.parquet: cannot be opened as a data set .*no data"),
        ("hf:{}/saved:test", IMAGES, "expected no split, because .*saved has one only, got test"),
        ("hf:{}/two.parquet:test", IMAGES, "expected no split, because .*two.parquet has one only"),
        ("hf:{}/notes.txt", IMAGES, "notes.txt: expected a folder, or a file of kind"),
        ("hf:{}/gone", IMAGES, "gone': no such file or folder; expected a folder of images"),
        ("hf:nobody/nothing:test", IMAGES, r"nobody/nothing: cannot be opened as a data set \("),
    ],
)
def test_what_cannot_be_opened_gives_one_line(
    tmp_path: Path, name: str, inputs: Inputs, message: str
) -> None:
    (tmp_path / "notes.txt").write_text("some text")
    if "two" in name:
        rows(0, 2).add_column("png", [{"bytes": png, "path": None} for png in PNGS[:2]]).cast_column(
            "png", datasets.Image()
        ).select_columns(["img", "png"]).to_parquet(tmp_path / "two.parquet")
    pd.DataFrame({"x": [1.0, 2.0], "y": [0, 1]}).to_parquet(tmp_path / "numbers.parquet")
    pd.DataFrame({"image": ["a.png", "b.png"]}).to_parquet(tmp_path / "paths.parquet")
    pd.DataFrame({"input_ids": [[0.5], [1.5]]}).to_parquet(tmp_path / "floats.parquet")
    for file in ("broken.parquet", "broken.tar"):
        (tmp_path / file).write_bytes(b"not one")
    rows(0, 2).save_to_disk(tmp_path / "saved")
    rows(0, 0).to_parquet(tmp_path / "empty.parquet")
    source = name.format(tmp_path) if name.startswith("hf:") else tmp_path / name
    with pytest.raises(InputError, match=message) as caught:
        open_data(source, inputs)
    assert "\n" not in str(caught.value)


def test_without_the_library_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = plain_parquet(tmp_path / "a")
    monkeypatch.setitem(sys.modules, "datasets", None)
    for source in (path, "hf:ylecun/mnist"):
        with pytest.raises(MissingExtraError, match=r"pip install 'fathometer\[datasets\]'"):
            require_data(source)


def test_a_folder_of_images_with_an_archive_in_it_stays_one(tmp_path: Path) -> None:
    save_image(tmp_path / "photos" / "a.png", 7)
    shard(tmp_path / "photos" / "all")
    assert values(open_data(tmp_path / "photos", IMAGES)) == [7]
