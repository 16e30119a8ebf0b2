"""No file, however wrong, ends in a traceback, takes more than ten seconds or more than bounded memory: it is a good
one, or its mistakes are told with place and words. Open-ended: `make fuzz KIND=files`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.conftest import ROOT
from tests.random import bad_files as b
from tests.random import spoilt_events, spoilt_files
from tests.random.profile import examples
from trendlake.cep_core.errors import MAX_ERRORS, TrendlakeError
from trendlake.cep_core.yaml.source import plain, read_yaml
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.project.paths import Project

pytestmark = pytest.mark.random


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy of the project, whose files may be written over."""
    return b.project_in(tmp_path_factory.mktemp("bad") / "project")


def errors_of(project: Project, kind: b.Kind, stem: str, text: str) -> list[TrendlakeError]:
    """The errors of a file with this text."""
    return b.checked(project, b.BadFile(kind, stem, text.encode()))


@pytest.fixture(scope="module")
def events(spoilt: Project) -> Contract:
    """The contract that files of events are read by."""
    return spoilt_events.contract_in(spoilt.root)


@pytest.mark.parametrize(("kind", "path"), b.SHIPPED, ids=lambda part: getattr(part, "stem", part))
def test_shipped_files_are_good(spoilt: Project, kind: b.Kind, path: Path) -> None:
    """What the mutations begin with has no mistake, as text and as JSON."""
    assert errors_of(spoilt, kind, path.stem, path.read_text()) == []
    assert errors_of(spoilt, kind, path.stem, spoilt_files.as_json(plain(read_yaml(path).data))) == []


@examples(100)
@given(spoilt_files.spoilt_texts())
def test_mistakes_of_the_text(spoilt: Project, file: b.BadFile) -> None:
    b.checked(spoilt, file)


@examples(100)
@given(spoilt_files.spoilt_trees())
def test_mistakes_of_the_tree(spoilt: Project, file: b.BadFile) -> None:
    b.checked(spoilt, file)


@examples(80)
@given(spoilt_files.spoilt_expressions())
def test_expressions_of_fragments(spoilt: Project, file: b.BadFile) -> None:
    b.checked(spoilt, file)


@examples(60)
@given(spoilt_files.spoilt_mappings())
def test_queries_given_as_data(query: dict[str, Any]) -> None:
    b.checked_mapping(query)


@examples(150)
@given(spoilt_events.EVENT_FILES)
def test_files_of_events(spoilt: Project, events: Contract, file: spoilt_events.EventsFile) -> None:
    spoilt_events.checked_events(events, spoilt.root, file)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOMB, "more than 20,000 values"),
        ("a: &a [*a]\n", "within what it names"),
        ("a: " + "[" * 60 + "]" * 60, "nested deeper than 50"),
        ("".join(" " * depth + "a:\n" for depth in range(500)), "nested deeper than 50"),
        ("".join(f"k{number}: 1\n" for number in range(15_000)), "more than 20,000 values"),
        ("a: " + "9" * 5000, "more than 400 digits"),
        ("a: 2013-02-30\n", "not a value"),
        ("a: 1\na: 2\n", "duplicate key"),
        ("1: a\n'1': b\n", "twice"),
        ("? [a, b]\n: 1\n", "a key is a word"),
        ("a: !!python/object/apply:os.system [id]\n", "without tags"),
        ("a: !!python/name:os.system ''\n", "without tags"),
        ("a: !!binary aGVsbG8=\n", "without tags"),
        ('a: "\\ud800"\n', "surrogate"),
        ('a: "\\0"\n', "NUL"),
        ("a: \x00\n", "not allowed"),
        ("a: 1\n---\na: 2\n", "another document"),
        ("a: '" + "x" * 300_000 + "'\n", "larger than 250,000 bytes"),
        ("[1, 2]\n", "a mapping of keys"),
        ("", "a mapping of keys"),
    ],
    ids=lambda text: text[:20].encode("unicode_escape").decode(),
)
@pytest.mark.parametrize("kind", ["pattern", "contract", "profile"])
def test_yaml_that_is_refused(spoilt: Project, kind: b.Kind, text: str, words: str) -> None:
    """The same bounds for every kind of file, told where they are passed."""
    stem = {"pattern": "falling_prices", "contract": "trades", "profile": "local"}[kind]
    (error,) = errors_of(spoilt, kind, stem, text)
    assert words in error.message


@pytest.mark.parametrize(
    "name", ["../x", "a/b", ".", "..", "", "x" * 300, "a\nb", "é", "/etc/passwd", "C:\\x", "-rf", "A"]
)
def test_names_stay_in_the_warehouse(spoilt: Project, name: str) -> None:
    """Names of patterns, sources and tables are folders: letters, digits and _ only."""
    pattern = read(ROOT / "examples/greta/falling_prices.yaml")
    for key in ("name", "source"):
        assert errors_of(spoilt, "pattern", "falling_prices", spoilt_files.as_json(pattern | {key: name}))
    contract = read(ROOT / "data_contracts/trades.yaml")
    contract["schema"][0]["name"] = name
    assert errors_of(spoilt, "contract", "trades", spoilt_files.as_json(contract))


def read(path: Path) -> Any:
    return plain(read_yaml(path).data)


def pattern_with(spoilt: Project, **keys: Any) -> list[TrendlakeError]:
    query = read(ROOT / "examples/greta/falling_prices.yaml") | keys
    return errors_of(spoilt, "pattern", "falling_prices", spoilt_files.as_json(query))


MANY = ",".join("Stock S?" for _ in range(1000))


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("Stock S{1,1000000000}", "more than 1000 repetitions"),
        ("Stock S{1," + "9" * 5000 + "}", "more than 1000 repetitions"),
        ("(Stock S){1,1000}", "more than 500 states"),
        ("((Stock S){1,1000}){1,1000}", "unrolls to more than 4000 events"),
        (f"SEQ({MANY}, Stock S)", "too many ways from part to part"),
        ("(((Stock S?){1,10}){1,10}){1,40}", "too many ways from part to part"),
        ("(" * 5000 + "Stock S", "nested deeper than 60"),
        ("Stock S" + "+" * 5000, "more than 150 operators"),
        ("SEQ(" + ",".join(f"Stock s{number}" for number in range(600)) + ")", "more than 500 states"),
        ("Stock S" * 2000, "longer than 10000 characters"),
    ],
)
def test_patterns_that_are_too_large(spoilt: Project, pattern: str, words: str) -> None:
    """A pattern that would unroll without end is refused before it does."""
    errors = pattern_with(spoilt, pattern=pattern, where=[], **{"return": {"n": "COUNT(*)"}})
    assert words in errors[0].message


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("NOT " * 1000 + "S.price > 0", "more than 150 operators"),
        ("S.price > 0" + " OR S.price > 0" * 600, "more than 150 operators"),
        ("S.price" + " + 1" * 500 + " > 0", "more than 150 operators"),
        ("S.price > " + "9" * 5000, "a number that no column holds"),
        ("S.price > 1e999999999", "a number that no column holds"),
        ("S.price > 1e400", "a number that no column holds"),
        ("9223372036854775807 + 1 > 0", "has no value"),
        ("S.event_time > TIMESTAMP '0001-01-01T00:00:00+14:00'", "not in the years 1 to 9999"),
        ("INTERVAL '1e999999999' DAY > 1 day", "longer than 10,000 years"),
        ("__import__('os').system('id')", "not expected here"),
        ("S.price > 0; DROP TABLE x", "not expected here"),
        ("eval(S.price) > 0", "no function 'eval'"),
    ],
)
def test_conditions_that_are_refused(spoilt: Project, condition: str, words: str) -> None:
    """A condition is data: what its grammar does not know, and what has no bound, is refused in its place."""
    (error, *_) = pattern_with(spoilt, where=[condition])
    assert words in error.message


@pytest.mark.parametrize(
    "within", ["1e30 days", "1e999999999 days", "9" * 5000 + " days", "99999999999 weeks", "INTERVAL 'NaN' DAY"]
)
def test_durations_have_an_end(spoilt: Project, within: str) -> None:
    assert pattern_with(spoilt, within=within)


DEEP = ("S.price > 0" + " OR S.price > 0" * 140, "S.price" + " + 1" * 140 + " > 0", "NOT " * 140 + "S.price > 0")


@pytest.mark.parametrize("condition", DEEP, ids=["or", "sum", "not"])
def test_the_deepest_conditions_are_read(spoilt: Project, condition: str) -> None:
    """What is not refused for its depth can be walked, printed and told apart, in patterns and in contracts."""
    assert pattern_with(spoilt, where=[condition]) == []
    contract = read(ROOT / "data_contracts/trades.yaml")
    condition = condition.replace("S.price", "hour(event_time)")
    rule = {"type": "custom", "engine": "trendlake", "name": "deep", "implementation": condition}
    contract["schema"][0]["quality"] = [rule]
    assert errors_of(spoilt, "contract", "trades", spoilt_files.as_json(contract)) == []


def test_a_pattern_without_a_source(spoilt: Project) -> None:
    """`source: null` is none either: it was refused without a word."""
    (error,) = pattern_with(spoilt, source=None)
    assert error.message == "'source' is missing"


def test_a_file_with_thousands_of_mistakes(spoilt: Project) -> None:
    """A hundred are told, and that there are more."""
    errors = pattern_with(spoilt, where=["S.bad > 0"] * 3000)
    assert len(errors) == MAX_ERRORS + 1
    assert errors[-1].code == "MORE"


def test_what_is_told_can_be_printed(spoilt: Project) -> None:
    """A file cannot make a terminal or a log show what it likes: escapes and marks of direction come as numbers."""
    errors = pattern_with(spoilt, **{"owner\x1b[31m\u202e": "x"})
    told_ = "\n".join(map(str, errors))
    assert "\\u001b[31m" in told_
    assert "\x1b" not in told_


COLUMN = {"name": "drawn", "logicalType": "number"}


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (COLUMN | {"logicalTypeOptions": {"format": []}}, "format is a word"),
        (COLUMN | {"logicalTypeOptions": {"format": "f63"}}, "no format 'f63' of number"),
        (COLUMN | {"logicalTypeOptions": {"multipleOf": 0}}, "more than 0"),
        (COLUMN | {"logicalTypeOptions": {"minimum": 5, "maximum": 1}}, "no value is between"),
        (COLUMN | {"logicalTypeOptions": {"minimum": float("nan")}}, "is a number"),
        ({"name": "drawn", "logicalType": "string", "logicalTypeOptions": {"minLength": "x"}}, "a whole number"),
        (
            {"name": "drawn", "logicalType": "string", "logicalTypeOptions": {"minLength": 5, "maxLength": 4}},
            "less than minLength",
        ),
        ({"name": "drawn", "logicalType": "string", "logicalTypeOptions": {"pattern": [1]}}, "a regular expression"),
        ({"name": "drawn", "physicalType": "decimal(99,1)"}, "there is no Spark type"),
        ({"name": "drawn", "physicalType": "int(3)"}, "there is no Spark type"),
        ({"name": " ", "logicalType": "string"}, "characters that can be printed"),
        ({"name": "sel ect", "logicalType": "string"}, "column 'sel ect': Delta tables take no space"),
        *(
            ({"name": f"a{char}b", "logicalType": "string"}, f"Delta tables take no '{char}' in a column's name")
            for char in ",;{}()="
        ),
        ({"name": "SYMBOL", "logicalType": "number"}, "'symbol' and 'SYMBOL' differ in upper and lower case only"),
        (
            COLUMN | {"customProperties": [{"property": "nullWords", "value": "NA"}]},
            "nullWords is a list of texts, not 'NA'",
        ),
    ],
)
def test_columns_that_are_refused(spoilt: Project, column: dict[str, Any], words: str) -> None:
    """A clause of a contract is understood or refused, never passed over."""
    contract = read(ROOT / "data_contracts/trades.yaml")
    contract["schema"][0]["properties"].append(column)
    errors = errors_of(spoilt, "contract", "trades", spoilt_files.as_json(contract))
    assert [error for error in errors if words in error.message], errors


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"metric": "invalidValues", "arguments": {"validValues": 3}, "mustBe": 0}, "a list of values"),
        ({"metric": "invalidValues", "arguments": {"validValues": "abc"}, "mustBe": 0}, "a list of values"),
        ({"metric": "invalidValues", "arguments": {"validValues": []}, "mustBe": 0}, "a list of values"),
        ({"metric": "invalidValues", "arguments": {"validValue": ["A"]}, "mustBe": 0}, "has no argument 'validValue'"),
        ({"metric": "duplicateValues", "arguments": {"properties": 5}, "mustBe": 0}, "a list of values"),
        ({"metric": "nullValues", "mustBe": float("nan")}, "the bound of"),
        ({"metric": "nullValues", "mustBeBetween": [5, 1]}, "the bound of"),
        ({"metric": "nullValues", "mustBe": 0, "unit": "prozent"}, "unknown unit"),
    ],
)
def test_rules_that_are_refused(spoilt: Project, rule: dict[str, Any], words: str) -> None:
    contract = read(ROOT / "data_contracts/trades.yaml")
    contract["schema"][0]["properties"].append({"name": "drawn", "logicalType": "string", "quality": [rule]})
    errors = errors_of(spoilt, "contract", "trades", spoilt_files.as_json(contract))
    assert [error for error in errors if words in error.message], errors


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e300, -1, "x"])
@pytest.mark.parametrize("level", ["latency", "maxFuture"])
def test_lateness_has_an_end(spoilt: Project, level: str, value: Any) -> None:
    contract = read(ROOT / "data_contracts/trades.yaml")
    contract["slaProperties"] = [{"property": level, "value": value, "unit": "d"}]
    assert errors_of(spoilt, "contract", "trades", spoilt_files.as_json(contract))


def test_a_hang_is_a_failure(spoilt: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline of these tests ends what does not end by itself."""

    def forever(project: Project, path: Path) -> None:
        while True:
            pass

    monkeypatch.setattr(b, "READERS", {"pattern": forever})
    monkeypatch.setattr(b, "PATIENCE", 0.1)
    with pytest.raises(b.TooSlow):
        errors_of(spoilt, "pattern", "falling_prices", "")
