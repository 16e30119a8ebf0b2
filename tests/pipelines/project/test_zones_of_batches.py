"""Patterns of a batch that have a schedule agree on the clock that it is read by."""

from __future__ import annotations

from trendlake.cep_core import Pattern, load_pattern
from trendlake.pipelines.project.batches import batch_of, batches_of

QUERY = {"kind": "trends", "pattern": "S+", "return": {"n": "COUNT(*)"}, "within": "1 hour", "source": "trades"}


def pattern(name: str, **keys: str) -> Pattern:
    return load_pattern({**QUERY, "name": name, "schedule": "@daily", "batch": "morning", **keys})


def test_a_pattern_of_another_zone_is_left_out() -> None:
    """With a mistake at its key; UTC is the zone of patterns that name none."""
    read = {name: pattern(name) for name in ("one", "two")}
    read |= {"three": pattern("three", time_zone="UTC"), "four": pattern("four", time_zone="Europe/Berlin")}
    batch = batches_of(read, None)["morning"]
    assert batch.members == ("one", "two", "three")
    (mistake,) = batch.others["four"]
    assert mistake.message.startswith("time_zone: Europe/Berlin, but 'one' of the same batch 'morning' has UTC")


def test_without_a_schedule_zones_may_differ() -> None:
    """Each pattern reads the range in its own zone."""
    read = {
        name: load_pattern({**QUERY, "name": name, "batch": "b", **zone})
        for name, zone in (("one", {}), ("two", {"time_zone": "Europe/Berlin"}))
    }
    assert batches_of(read, None)["b"].members == ("one", "two")


def test_the_rule_of_a_profile_parts_zones() -> None:
    """Patterns of one source and schedule in two zones are two batches."""
    rule = "by_source_and_schedule"
    read = [load_pattern({**QUERY, "schedule": "@daily", **zone}) for zone in ({}, {"time_zone": "Europe/Berlin"})]
    assert [batch_of(one, rule) for one in read] == ["trades_daily", "trades_daily_europe_berlin"]
