from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fathometer.errors import InputError
from fathometer.reproduce import ITEMS, Answer, Claim, Item, Workshop, chosen_items, reproduce
from fathometer.reproduce.page import page_of, read_verdicts, write_page
from fathometer.reproduce.scales import Seconds

DOCS = Path(__file__).parents[2] / "docs"


def run(workshop: Workshop) -> Mapping[str, Answer]:
    workshop.table("numbers", pd.DataFrame({"x": [1, 2]}))
    workshop.note("A note.")
    workshop.note("A note.")
    return {"one": Answer(workshop.pick(smoke=False, small=True, paper=True), "1 | 2 < 3")}


ONE = Item(
    name="affinity-figure-2a",
    title="A figure",
    claims={"one": Claim("One is one.", "It is.")},
    run=run,
    seconds=Seconds(1, 2, 3),
    small="less",
    sources=("cifar10",),
    device="cuda",
)


def test_a_run_leaves_its_data_and_its_verdict(tmp_path: Path) -> None:
    verdict = reproduce(ONE, out=tmp_path)
    folder = tmp_path / "small" / ONE.name
    assert sorted(path.name for path in folder.iterdir()) == ["numbers.csv", "verdict.json"]
    assert verdict.outcome == "holds"
    assert verdict.notes == ("A note.",)
    assert verdict.command == "fathometer reproduce affinity-figure-2a --scale small"


def test_the_published_setting_needs_what_the_user_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs --cifar10"):
        reproduce(ONE, "paper", out=tmp_path)
    assert not any(tmp_path.iterdir())
    verdict = reproduce(ONE, "paper", out=tmp_path, sources={"cifar10": tmp_path / "my secret folder"})
    assert verdict.command.endswith("--scale paper --cifar10 FOLDER")
    assert "secret" not in (tmp_path / "paper" / ONE.name / "verdict.json").read_text("utf-8")


def test_no_claim_is_left_out_and_none_invented(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="answered"):
        reproduce(replace(ONE, claims={"two": Claim("Two.", "Two.")}), out=tmp_path)


def test_items_are_chosen_by_pattern_each_once() -> None:
    assert [item.name for item in chosen_items(["affinity-figure-2b", "affinity-figure-2?"])] == [
        "affinity-figure-2a",
        "affinity-figure-2b",
        "affinity-figure-2c",
    ]
    assert len(chosen_items(["all"])) == len(ITEMS)
    with pytest.raises(InputError, match="did you mean leaky-figure-1a"):
        chosen_items(["leaky-figure1a"])


def test_the_page_shows_the_larger_scale_and_escapes_what_a_table_cannot_hold(tmp_path: Path) -> None:
    reproduce(ONE, "small", out=tmp_path)
    reproduce(ONE, "smoke", out=tmp_path)
    write_page(tmp_path, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text("utf-8")
    assert f"**{len(ITEMS)} items**: 1 holds, {len(ITEMS) - 1} not run." in page
    assert r"1 \| 2 &lt; 3" in page
    assert "does not hold**" not in page  # that was the smoke run
    reproduce(ONE, "paper", out=tmp_path, sources={"cifar10": tmp_path})
    assert "At scale `small` (" in page_of(read_verdicts(tmp_path), Path())


def test_the_page_of_the_documents_is_that_of_the_verdicts_beside_it() -> None:
    found = read_verdicts(DOCS / "reproduction")
    assert (DOCS / "reproduction.md").read_text("utf-8") == page_of(found, Path("reproduction"))


def test_verdicts_of_the_documents_are_about_the_claims_of_the_code() -> None:
    for name, scales in read_verdicts(DOCS / "reproduction").items():
        for verdict in scales.values():
            assert verdict.claims == ITEMS[name].claims, f"{name}: stated otherwise since it was run"
            assert verdict.title == ITEMS[name].title
