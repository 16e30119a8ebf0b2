"""Revisions that compute the rows of changed documents only: the difference is that of all windows computed anew."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from tests.random.profile import share
from tests.random.xml_joins import NAMESPACES, elements, queries
from tests.support.document_lake import DocumentLake
from tests.support.flights import all_steps, renamed
from tests.support.xml_documents import engine
from trendlake.cep_core.xml_join.run import partners
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.road import NotHere, NotHereError, answer_of, tried
from trendlake.pipelines.results.provenance import PROVENANCE
from trendlake.pipelines.revision import here as local
from trendlake.pipelines.revision.here import RevisionHere, revision_here
from trendlake.pipelines.revision.scope import task_of
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.revise import Shared, revise

pytestmark = pytest.mark.spark

SECOND = 1_000_000
START = 20_000 * 86_400 * SECOND
WITHIN = ("1 second", "2 seconds", "90 seconds", "unbounded")
ALIKE = {
    "kind": "xml_join",
    "left": {"a": "/a", "k": "$a/k"},
    "right": {"b": "/a", "l": "$b/k"},
    "where": ["$k = $l"],
    "operator": "join",
    "within": "1 hour",
    "return": {"k": "$k"},
}


def documents_of(r: Random, alike: list[str], ids: list[str]) -> dict[str, dict[str, Any]]:
    """Some that say the same, and some with equal times."""
    return {
        ident: {
            "id": ident,
            "time": START + r.randrange(6) * SECOND + r.choice((0, 0, 1)),
            "xml": r.choice(alike) if r.random() < 0.8 else elements(r),
        }
        for ident in ids
    }


def both(run: Run, monkeypatch: pytest.MonkeyPatch) -> tuple[RevisionHere, RevisionHere]:
    """A revision of the rows of changed documents, where they are enough, and one of all rows of the windows."""
    return revised(run, monkeypatch, whole=False), revised(run, monkeypatch, whole=True)


def revised(run: Run, monkeypatch: pytest.MonkeyPatch, *, whole: bool) -> RevisionHere:
    """One of `both`. Raises NotHereError."""
    shared = Shared([run])
    ledger = shared.ledger(run)
    task = task_of(run, ledger, shared.sources(run, ledger))
    with monkeypatch.context() as patched:
        if whole:
            patched.setattr(local, "changed_pairs", lambda run, seen: None)
        return answer_of(revision_here(run, task, int(ledger.version or 0)))


def _is_local(run: Run, monkeypatch: pytest.MonkeyPatch, *, whole: bool) -> bool:
    revision = tried(lambda: revised(renamed(run, "revision"), monkeypatch, whole=whole))
    return not isinstance(revision, NotHere)


def operations(revision: RevisionHere) -> list[Any]:
    """What it would publish: rows with what is done to them and the time that they had."""
    if revision.rewrite is None:
        return []
    rows = revision.rewrite.differences.operations("end")
    own = [name for name in rows.column_names if name not in PROVENANCE]
    return sorted(repr(sorted(row.items())) for row in rows.select(own).to_pylist())


@pytest.mark.parametrize("seed", range(share(6)))
def test_differences_are_those_of_all_windows(
    spark: SparkSession, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents that come, change, move and go, one or several at once; random queries."""
    r = Random(f"changed {seed}")
    lake = DocumentLake.of(spark, tmp_path / "project")
    alike = [elements(r) for _ in range(2)]
    alike += ["<a><b>1 &amp;<i> x</i></b></a>", "<a><b>1 <![CDATA[&]]><!-- 1 --> x</b></a>"]
    same = {
        "left": {"a": "//*"},
        "right": {"b": "//*"},
        "where": ["normalize-space($a) = $b"],
        "operator": "followed_by",
    }
    file: dict[str, Any] = {"kind": "xml_join", "namespaces": NAMESPACES}
    file["queries"] = {f"q{number}": queries(r) for number in range(3)} | {"same": same | {"return": {}}}
    longest = r.choice(WITHIN)
    for query in file["queries"].values():
        query["within"] = longest
    documents = documents_of(r, alike, [f"d{number}" for number in range(14)])
    lake.deliver("items", documents.values(), "first")
    run = lake.run(str(lake.pattern("pairs", "items", file)), START - 86_400 * SECOND, START + 86_400 * SECOND, "first")
    all_steps(run)
    narrow = 0
    for number in range(4):
        changed = documents_of(r, alike, r.sample([f"d{n}" for n in range(16)], r.choice((1, 1, 2))))
        gone = r.sample(sorted(documents), 1) if r.random() < 0.3 else []
        documents = {ident: one for ident, one in (documents | changed).items() if ident not in gone}
        lake.replace("items", changed.values())
        if gone:
            lake.delete("items", gone)
        again = renamed(run, f"revision {number}")
        quick, whole = both(again, monkeypatch)
        assert operations(quick) == operations(whole)
        assert [check.success for check in quick.checks] == [check.success for check in whole.checks]
        assert quick.affected.stretches == whole.affected.stretches
        narrow += quick.part is not None
        record = revise(again)
        assert (record.rows_inserted, record.rows_updated, record.rows_deleted) == (
            tuple(quick.rewrite.counts.values()) if quick.rewrite else (0, 0, 0)
        )
        if quick.part is not None:
            assert record.note["computed"] == []
        rows = lake.rows(run)
        assert len(rows) == len(engine(file, list(documents.values())))
    assert narrow


@pytest.mark.long
def test_answers_that_were_published_count_for_the_limit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late document gives an unchanged one its third answer, of two that are allowed."""
    query = {
        "kind": "xml_join",
        "left": {"a": "/a", "k": "$a/k"},
        "right": {"b": "/b", "l": "$b/l"},
        "where": ["$k = $l"],
        "operator": "followed_by",
        "within": "1 hour",
        "limit_per_document": 2,
        "return": {},
    }
    lake = DocumentLake.of(spark, tmp_path / "project")
    left = [{"id": f"a{n}", "time": START + n * SECOND, "xml": "<a><k>1</k></a>"} for n in range(3)]
    right = {"id": "b", "time": START + 5 * SECOND, "xml": "<b><l>1</l></b>"}
    lake.deliver("items", [left[0], left[1], right], "first")
    run = lake.run(str(lake.pattern("limited", "items", query)), START - SECOND, START + 7_200 * SECOND, "first")
    all_steps(run)
    assert len(lake.rows(run)) == 2
    lake.deliver("items", [left[2]], "later")
    with pytest.raises(NotHereError, match="TOO_MANY_ANSWERS"):
        revised(renamed(run, "looked at"), monkeypatch, whole=False)
    with pytest.raises(PythonException, match="TOO_MANY_ANSWERS"):
        revise(renamed(run, "revision"))


@pytest.mark.parametrize(
    ("limit", "is_local"),
    [
        ("DOCUMENT_BYTES", (True, False)),
        pytest.param("SEARCHED_BYTES", (False, True), marks=pytest.mark.repeats),
        pytest.param("FEED_BYTES", (False, False), marks=pytest.mark.repeats),
    ],
)
def test_large_tables_are_searched_but_not_read_whole(
    spark: SparkSession, tmp_path: Path, limit: str, is_local: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = DocumentLake.of(spark, tmp_path / "project")
    first = [{"id": f"a{n}", "time": START + n * SECOND, "xml": "<a><k>1</k></a>"} for n in range(3)]
    lake.deliver("items", first, "first")
    run = lake.run(str(lake.pattern("large", "items", ALIKE)), START - SECOND, START + 7_200 * SECOND, "first")
    all_steps(run)
    lake.deliver("items", [first[0] | {"xml": "<a><k>2</k></a>"}], "later")
    monkeypatch.setattr(limits, limit, 1)
    assert (_is_local(run, monkeypatch, whole=False), _is_local(run, monkeypatch, whole=True)) == is_local
    revise(renamed(run, "revision"))
    assert len(lake.rows(run)) == 2


@pytest.mark.long
def test_many_changed_documents_are_computed_with_their_windows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partners, "MOST_CHANGED", 1)
    lake = DocumentLake.of(spark, tmp_path / "project")
    first = [{"id": f"a{n}", "time": START + n * SECOND, "xml": "<a><k>1</k></a>"} for n in range(3)]
    lake.deliver("items", first, "first")
    run = lake.run(str(lake.pattern("many", "items", ALIKE)), START - SECOND, START + 7_200 * SECOND, "first")
    all_steps(run)
    for number, count in enumerate((2, 1)):
        changed = [one | {"xml": f"<a><k>{number + 2}</k></a>"} for one in first[:count]]
        lake.deliver("items", changed, f"later {number}")
        again = renamed(run, f"revision {number}")
        quick, whole = both(again, monkeypatch)
        assert (quick.part is None) == (count == 2)
        assert operations(quick) == operations(whole) != []
        revise(again)
