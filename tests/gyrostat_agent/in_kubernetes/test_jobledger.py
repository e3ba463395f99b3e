"""The ledger on the job: bounded, and the newer of the two is taken up."""

from typing import Any

import pytest

from gyrostat_agent.kubernetes import jobledger


def facts(number: int, bulk: int = 0) -> dict[str, Any]:
    filling = "".join(chr(33 + i * i % 90) + str(i) for i in range(bulk))
    return {"version": 1, "next_directive": number, "incident_count": 1, "run": "run", "filling": filling}


def test_a_ledger_comes_back_from_the_job_as_it_went() -> None:
    """With the journal's head; packed, and small."""
    told = jobledger.written(facts(4), "17:ab")
    noted, doubt = jobledger.read(told)
    assert doubt == "" and noted is not None and noted.facts == {**facts(4), "journal_head": "17:ab"}


def test_a_ledger_that_is_too_large_leaves_its_counts() -> None:
    """An annotation is bounded; the counts are enough to tell an older copy."""
    told = jobledger.written(facts(4, 20000), "17:ab")
    assert len(told[jobledger.KEY]) < 300
    assert jobledger.read(told)[0] == jobledger.Noted((4, 1), None)


@pytest.mark.parametrize(
    ("beside", "why", "on_job", "number", "word"),
    [
        (4, "", None, 4, ""), (4, "", 4, 4, ""), (5, "", 4, 5, ""), (3, "", 4, 4, ""), (None, "", 4, 4, ""),
        (None, "", None, None, ""), (None, "cannot be read", 4, None, "cannot be read"),
        (3, "", "large", None, "is older"), (None, "", "large", None, "is not here"),
        (5, "", "damaged", None, "cannot be read"),
    ],
)  # fmt: skip
def test_the_newer_ledger_wins_or_nothing_is_believed(
    beside: int | None, why: str, on_job: Any, number: int | None, word: str
) -> None:
    """A disk that was put back to an older copy must not let what was done be done again."""
    notes = {
        None: {}, "damaged": {jobledger.KEY: "{"}, "large": jobledger.written(facts(4, 20000), "1:a"),
    }  # fmt: skip
    noted, doubt = jobledger.read(notes.get(on_job) if on_job in notes else jobledger.written(facts(on_job), "1:a"))
    found, said = jobledger.newer(facts(beside) if beside else None, why, noted, doubt)
    assert (found and found["next_directive"]) == number and word in said and bool(said) == bool(word)


@pytest.mark.parametrize(
    "raw",
    ["[]", "null", '{"next_directive": 1}', '{"next_directive":1,"incident_count":0,"facts":"eA=="}', "[" * 9000,
     '{"next_directive":1e999,"incident_count":0}'],
)  # fmt: skip
def test_what_somebody_wrote_into_the_annotation_is_not_believed(raw: str) -> None:
    """Nor does it end the agent."""
    assert jobledger.read({jobledger.KEY: raw}) == (None, f"annotation {jobledger.KEY} of the job cannot be read")
