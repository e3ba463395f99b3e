"""The schema of packs says what the reader takes: an editor that follows it writes no mistake of that kind."""

import json
import re
from typing import Any

import pytest
import yaml
from run_story import CORE

from gyrostat_rules.detectors import DETECTORS
from gyrostat_rules.lasting import lasting
from gyrostat_rules.packdraft import PackDraft, keys_at
from gyrostat_rules.packschema import schema

SCHEMA = json.loads(json.dumps(schema(), allow_nan=False))
RULE = SCHEMA["$defs"]["RuleDraft"]
PACKS = list(yaml.safe_load_all(CORE))


def given(detector: str) -> dict[str, Any]:
    """What a rule of that detector may give under ``with``."""
    found: dict[str, Any] = next(
        one["then"]["properties"]["with"]
        for one in RULE["allOf"]
        if one["if"]["properties"]["detector"]["const"] == detector
    )
    return found


def test_it_names_the_keys_that_the_reader_knows() -> None:
    """As a file spells them, at the top and in a rule; no other is taken."""
    assert set(SCHEMA["properties"]) == set(keys_at(())) and SCHEMA["title"] == "Gyrostat rule pack"
    assert set(RULE["properties"]) == set(keys_at(("groups", 0, "rules", 0))) >= {"for", "with", "when", "match"}
    assert RULE["additionalProperties"] is False and PackDraft.model_config["extra"] == "forbid"


@pytest.mark.parametrize("detector", DETECTORS)
def test_parameters_hang_on_the_detector(detector: str) -> None:
    """Each of its own, and nothing else."""
    found = given(detector)
    assert set(found["properties"]) == set(getattr(DETECTORS[detector].params, "_fields", ()))
    assert found["additionalProperties"] is False


def test_what_has_a_list_of_words_offers_them() -> None:
    """Detectors, severities, faults and phases are completed as one types."""
    rule = next(r for p in PACKS for g in p["groups"] for r in g["rules"])
    for key in ("detector", "severity", "fault"):
        assert rule[key] in RULE["properties"][key]["enum"]
    assert "not warmup" in RULE["properties"]["when"]["items"]["enum"]


@pytest.mark.parametrize("text", ["10 steps", "1 step", "3 of 5 steps", "30s", "1h30m", "250ms", "", "5", "soon"])
def test_lengths_of_time_match_as_they_are_read(text: str) -> None:
    """The pattern takes what the reader takes."""
    assert bool(re.search(RULE["properties"]["for"]["pattern"], text)) == (lasting(text) is not None)


def test_the_packs_that_come_with_it_give_known_parameters() -> None:
    """Every ``with`` of theirs is in the schema of its detector, and none that is needed is missing."""
    for rule in (r for p in PACKS for g in p["groups"] for r in g["rules"]):
        known, told = given(rule["detector"]), set(rule.get("with", {}))
        assert told <= set(known["properties"]) and told >= set(known["required"]), rule["alert"]
