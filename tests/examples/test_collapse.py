"""The example of a training whose loss hides that its representation collapses."""

from __future__ import annotations

from examples.collapse import TRAININGS, first_findings, train


def test_the_check_finds_a_collapse_that_the_loss_hides() -> None:
    rows = train(0, **TRAININGS["no BatchNorm"])
    assert rows[-1]["loss"] < -0.99  # the optimum is -1
    assert rows[-1]["near"] < rows[0]["near"] - 0.2
    step = int(first_findings(rows)["rank"].split()[1].rstrip(":"))
    assert step <= 50
    assert next(row for row in rows if row["step"] == step)["loss"] > -0.9  # long before it is perfect


def test_the_check_says_nothing_about_the_training_that_works() -> None:
    assert not first_findings(train(1, **TRAININGS["with both"]))
