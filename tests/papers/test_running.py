from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fathometer.errors import InputError
from papers import ITEMS, Answer, Claim, Item, RunContext, Seconds, read_verdict, reproduce
from papers.page import page_of, read_verdicts, write_page
from papers.running import missing_sources, record_not_run, recover

DOCS = Path(__file__).parents[2] / "docs"


def run(context: RunContext) -> Mapping[str, Answer]:
    context.table("numbers", pd.DataFrame({"x": [1, 2]}))
    context.note("A note.")
    context.note("A note.")
    return {"one": Answer(context.pick(smoke=False, small=True, paper=True), "1 | 2 < 3")}


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
    assert verdict.command == "python -m papers run affinity-figure-2a --scale small"


def test_the_published_setting_needs_what_the_user_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs --cifar10"):
        reproduce(ONE, "paper", out=tmp_path)
    assert not any(tmp_path.iterdir())
    item = replace(ONE, sources=("imagenet",), optional=("plan",))
    assert not missing_sources(item, "paper", {"plan": tmp_path})  # which names its own images
    verdict = reproduce(ONE, "paper", out=tmp_path, sources={"cifar10": tmp_path / "my secret folder"})
    assert verdict.command.endswith("--scale paper --cifar10 FOLDER")
    assert "secret" not in (tmp_path / "paper" / ONE.name / "verdict.json").read_text("utf-8")


def test_a_result_takes_the_place_of_an_earlier_one_when_it_is_complete(tmp_path: Path) -> None:
    folder = tmp_path / "small" / ONE.name
    folder.mkdir(parents=True)
    (folder / "old.png").write_bytes(b"of another run")

    def broken(context: RunContext) -> Mapping[str, Answer]:
        run(context)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(replace(ONE, run=broken), out=tmp_path)
    assert [path.name for path in folder.parent.iterdir() if path.name != "shared"] == [ONE.name]
    assert (folder / "old.png").exists()
    reproduce(ONE, out=tmp_path)
    assert not (folder / "old.png").exists()


def test_a_refused_process_leaves_the_files_of_the_other_alone(tmp_path: Path) -> None:
    def shared(context: RunContext) -> Mapping[str, Answer]:
        answers = run(context)
        with pytest.raises(InputError, match="another process works on it"):
            reproduce(ONE, out=tmp_path)
        assert (context.folder / "numbers.csv").exists()
        recover(ONE, "small", tmp_path)
        assert (context.folder / "numbers.csv").exists()
        return answers

    reproduce(replace(ONE, run=shared), out=tmp_path)
    folder = tmp_path / "small" / ONE.name
    assert sorted(path.name for path in folder.iterdir()) == ["numbers.csv", "verdict.json"]


class KilledError(BaseException):
    """As a kill leaves it: nothing is put in order."""


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_one_result_is_there_at_any_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    folder = tmp_path / "small" / ONE.name
    reproduce(ONE, out=tmp_path)
    (folder / "of-the-old-one").touch()
    rename = Path.rename
    done: list[Path] = []

    def killed(self: Path, target: Path) -> Path:
        if len(done) == renames:
            raise KilledError
        done.append(target)
        return rename(self, target)

    def not_removed(*_: object, **__: object) -> None:
        if len(done) == renames:
            raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        patch.setattr(shutil, "rmtree", not_removed if renames else shutil.rmtree)
        with pytest.raises(KilledError):
            reproduce(ONE, out=tmp_path)
    recover(ONE, "small", tmp_path)
    assert read_verdict(folder / "verdict.json").outcome == "holds"
    assert (folder / "of-the-old-one").exists() == (renames == 0)
    assert {path.name for path in folder.parent.iterdir()} == {ONE.name, "shared"}


def test_a_result_that_cannot_take_its_place_leaves_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce(ONE, out=tmp_path)
    folder, rename = tmp_path / "small" / ONE.name, Path.rename
    before = (folder / "verdict.json").read_text("utf-8")

    def refused(self: Path, target: Path) -> Path:
        if self.name.endswith(".part"):
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(InputError, match="cannot be written"):
        reproduce(ONE, out=tmp_path)
    assert (folder / "verdict.json").read_text("utf-8") == before
    assert {path.name for path in folder.parent.iterdir()} == {ONE.name, "shared"}


def test_an_item_that_cannot_run_records_the_reason(tmp_path: Path) -> None:
    record_not_run(ONE, "paper", "it needs a | GPU", out=tmp_path)
    kept = read_verdict(tmp_path / "paper" / ONE.name / "verdict.json")
    assert (kept.outcome, kept.why) == ("not run", "it needs a | GPU")
    assert r"At scale `paper`: not run, it needs a \| GPU." in page_of(read_verdicts(tmp_path), Path())
    reproduce(ONE, "small", out=tmp_path)
    record_not_run(ONE, "small", "later", out=tmp_path)  # what is there stays
    assert "holds: 1," in page_of(read_verdicts(tmp_path), Path())


def test_the_page_shows_the_larger_scale_and_escapes_what_a_table_cannot_hold(tmp_path: Path) -> None:
    reproduce(ONE, "small", out=tmp_path)
    reproduce(ONE, "smoke", out=tmp_path)
    write_page(tmp_path, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text("utf-8")
    assert f"**{len(ITEMS)} items**: holds: 1, " in page
    assert f"not run: {len(ITEMS) - 1}." in page
    assert r"1 \| 2 &lt; 3" in page
    assert "does not hold**" not in page  # that was the smoke run
    reproduce(ONE, "paper", out=tmp_path, sources={"cifar10": tmp_path})
    assert "At scale `small` (" in page_of(read_verdicts(tmp_path), Path())
    with pytest.raises(InputError, match="found none"):
        write_page(tmp_path / "nothing", tmp_path / "page.md")


def test_the_page_of_the_documents_is_that_of_the_verdicts_beside_it() -> None:
    found = read_verdicts(DOCS / "reproduction")
    assert (DOCS / "reproduction.md").read_text("utf-8") == page_of(found, Path("reproduction"))


def test_a_verdict_on_other_claims_is_marked_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ITEMS, ONE.name, ONE)
    reproduce(ONE, "small", out=tmp_path)
    assert "*Stale:*" not in page_of(read_verdicts(tmp_path), Path())
    (name, claim), *_ = ONE.claims.items()
    changed = replace(ONE, claims={**ONE.claims, name: replace(claim, test="another test")})
    monkeypatch.setitem(ITEMS, ONE.name, changed)
    assert "*Stale:*" in page_of(read_verdicts(tmp_path), Path())
