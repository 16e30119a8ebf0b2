"""Which patterns a selector means, and in which order they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trendlake.cep_core import PatternErrors, load
from trendlake.cep_core.load import read_pattern
from trendlake.jobs.actions.revise import patterns_below
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.authoring import validate
from trendlake.pipelines.authoring.validate import check_files
from trendlake.pipelines.errors import CycleError, ProjectError
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.project.selection import Patterns

FILES = {
    "fall": "kind: trends\nsource: trades\ntags: [daily, prices]\nowner: ops\nbatch: morning\n",
    "fall_far": "kind: trends\nsource: trades\ntags: [daily]\nbatch: morning\n",
    "busy": "kind: trends\nsource: results/fall\n",
    "busiest": "kind: trends\nsource: results/busy\nowner: research\n",
    "alone": "kind: trends\nsource: flights\ntags: [weekly]\n",
}
REST = "pattern: Trade T+\nreturn: {n: COUNT(*)}\nwithin: 1 day\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[dict[str, str]], Project]:
    project = Project(tmp_path, tmp_path / ".trendlake")
    project.patterns.mkdir(parents=True)

    def files(texts: dict[str, str]) -> Project:
        for name, text in texts.items():
            (project.patterns / f"{name}.yaml").write_text(f"name: {name}\n{text}{REST}")
        return project

    return files


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["fall"], ["fall"]),
        (["fall*"], ["fall", "fall_far"]),
        (["tag:daily"], ["fall", "fall_far"]),
        (["tag:prices"], ["fall"]),
        (["owner:ops", "owner:research"], ["fall", "busiest"]),
        (["batch:morning"], ["fall", "fall_far"]),
        (["source:trades"], ["fall", "fall_far"]),
        (["source:trades+"], ["fall", "busy", "busiest", "fall_far"]),
        (["source:results/*"], ["busy", "busiest"]),
        (["kind:trends", "alone"], ["alone", "fall", "busy", "busiest", "fall_far"]),
        (["busiest", "busy", "alone", "fall"], ["fall", "busy", "busiest", "alone"]),
        (["result:failed"], ["fall_far"]),
        (["result:succeeded", "fall"], ["alone", "fall"]),
        (["*"], ["alone", "fall", "busy", "busiest", "fall_far"]),
    ],
)
def test_what_words_select(write: Callable[[dict[str, str]], Project], words: list[str], names: list[str]) -> None:
    """In the order of the words and of the files, but each after the pattern whose results it reads."""
    states = {"fall_far": "failed", "alone": "succeeded"}
    selected = Patterns(write(FILES)).select(words, lambda: states)
    assert sorted(selected) == sorted(names)
    for name, source in (("busy", "fall"), ("busiest", "busy")):
        assert {name, source} - set(selected) or selected.index(source) < selected.index(name)


def test_the_order_of_words_is_kept(write: Callable[[dict[str, str]], Project]) -> None:
    assert Patterns(write(FILES)).select(["busiest", "alone", "fall"]) == ["busiest", "alone", "fall"]
    assert Patterns(write(FILES)).select(["fall_far", "busy", "fall", "fall"]) == ["fall_far", "fall", "busy"]


def test_a_file_is_the_pattern_of_its_name(write: Callable[[dict[str, str]], Project], tmp_path: Path) -> None:
    project = write(FILES)
    other = tmp_path / "elsewhere.yaml"
    other.write_text(f"name: elsewhere\n{FILES['fall']}{REST}")
    words = [str(project.patterns / "fall.yaml"), "fall", str(other)]
    assert Patterns(project).select(words) == ["fall", str(other)]


@pytest.mark.parametrize(
    ("word", "message", "hint"),
    [
        ("fal", "there is no pattern 'fal'", "did you mean 'fall'?"),
        ("rise*", "'rise*' selects no pattern", "trendlake ls"),
        ("tag:dayly", "'tag:dayly' selects no pattern", "did you mean 'daily'?"),
        ("source:trade+", "'source:trade+' selects no pattern", "did you mean 'trades'?"),
        ("tags:daily", "there is no selector 'tags:'", "did you mean 'tag'?"),
        ("result:fail", "expected result:failed or result:succeeded", ""),
    ],
)
def test_a_word_that_selects_nothing(
    write: Callable[[dict[str, str]], Project], word: str, message: str, hint: str
) -> None:
    with pytest.raises(ProjectError) as caught:
        Patterns(write(FILES)).select(["alone", word])
    assert message in str(caught.value)
    assert hint in str(caught.value)


def test_a_circle_is_named(write: Callable[[dict[str, str]], Project]) -> None:
    circle = {"a": "source: results/b\n", "b": "source: results/a\n"}
    with pytest.raises(CycleError, match="a -> b -> a"):
        Patterns(write(circle)).select(["a", "b"])


def test_an_unreadable_file_is_named_where_its_keys_matter(write: Callable[[dict[str, str]], Project]) -> None:
    """Whether it is selected is not known; to leave it out would be a silent cut."""
    project = write(FILES)
    (project.patterns / "broken.yaml").write_text("name: broken\nkind: trends\nkind: trends\n")
    assert Patterns(project).select(["fall"]) == ["fall"]
    with pytest.raises(PatternErrors, match=r"broken\.yaml"):
        Patterns(project).select(["tag:daily"])


def test_members_of_a_batch_share_source_and_schedule(write: Callable[[dict[str, str]], Project]) -> None:
    project = write(FILES | {"late": 'source: flights\nbatch: morning\nschedule: "@hourly"\n'})
    with pytest.raises(PatternErrors) as caught:
        Patterns(project).batch("morning")
    text = str(caught.value)
    assert "late.yaml:2" in text
    assert "source: flights, but 'fall' of the same batch 'morning' has trades" in text
    assert "schedule: @hourly, but 'fall' of the same batch 'morning' has none" in text
    assert Patterns(write({"late": "source: trades\nbatch: evening\n"})).batch("morning") == ["fall", "fall_far"]
    with pytest.raises(ProjectError, match="did you mean 'morning'"):
        Patterns(project).batch("mornin")


def test_validate_compares_a_member_with_its_batch(write: Callable[[dict[str, str]], Project]) -> None:
    project = write({"one": "source: trades\nbatch: b\n", "two": 'source: trades\nschedule: "@daily"\nbatch: b\n'})
    project.contracts.mkdir()
    (project.contracts / "trades.yaml").write_text(CONTRACT)
    errors = {path.stem: str(error or "") for path, error, _ in check_files(project, project.pattern_files())}
    assert "schedule: none, but 'two' of the same batch 'b' has @daily" in errors["one"]
    assert "two.yaml:3" in errors["two"]


def test_no_file_is_read_for_each_other(
    write: Callable[[dict[str, str]], Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To compare each with its batch (whose members are far apart), and to find who reads what, down a long chain."""
    count = 12
    chain = {f"p{n}": f"source: results/p{n - 1}\n" if n else "source: trades\n" for n in range(count)}
    project = write({name: f"{text}batch: b{int(name[1:]) % (count // 2)}\n" for name, text in chain.items()})
    project.contracts.mkdir()
    (project.contracts / "trades.yaml").write_text(CONTRACT)
    reads: Counter[str] = Counter()

    def counted(path: Path) -> Any:
        reads[path.stem] += 1
        return read_pattern(path)

    monkeypatch.setattr(validate, "read_pattern", counted)
    assert len(list(check_files(project, project.pattern_files()))) == count
    assert set(reads) == set(chain)
    assert max(reads.values()) == 2  # for itself, and for the others

    reads.clear()
    monkeypatch.setattr(load, "read_pattern", counted)
    place = Place(project, Profile())
    assert patterns_below(place, "trades") == list(chain)
    assert reads == dict.fromkeys(chain, 1)


CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: trades
version: 1.0.0
status: active
schema:
  - name: trades
    customProperties: [{property: eventType, value: Trade}]
    properties:
      - {name: id, logicalType: string, required: true, customProperties: [{property: eventRole, value: event_id}]}
      - {name: at, logicalType: timestamp, required: true, customProperties: [{property: eventRole, value: event_time}]}
"""
