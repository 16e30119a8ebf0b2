"""Where an implementation of MMQJP goes wrong easily, each a small example."""

from __future__ import annotations

import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pyarrow as pa
import pytest

from tests.cep_core.xml_join.test_worked_cases import SCHEMA
from tests.reference.xml_join import broken_rule
from tests.support.xml_documents import MICROS, documents_table, engine
from trendlake.cep_core import PatternErrors, compile_query, evaluate, run_plan
from trendlake.cep_core.documents.document import MAX_BYTES, BrokenDocumentError, Reader
from trendlake.cep_core.errors import DocumentWarning
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.xml_join.compile.plan import XmlJoinPlan
from trendlake.pipelines.generate.feeds import feeds
from trendlake.pipelines.generate.xml_queries import feed_pattern, feed_queries

BASE: dict[str, Any] = {
    "kind": "xml_join",
    "left": {"p": "/p", "k": "$p/k"},
    "right": {"q": "/q", "m": "$q/m"},
    "operator": "followed_by",
    "where": ["$k = $m"],
    "within": "5 seconds",
    "return": {},
}


def documents(*texts: str, step: int = MICROS) -> list[dict[str, Any]]:
    return [{"id": f"d{n}", "time": n * step, "xml": text} for n, text in enumerate(texts)]


def pairs(query: dict[str, Any], rows: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(dict(row)["left_id"], dict(row)["right_id"]) for row in engine(query, rows)}


def plan_of(query: dict[str, Any]) -> Any:
    return compile_query(query, SCHEMA)


def test_1_an_unjoined_variable_has_to_exist() -> None:
    rows = documents("<p><k>1</k><t/></p>", "<p><k>1</k></p>", "<q><m>1</m></q>")
    titled = {**BASE, "left": {**BASE["left"], "t": "$p/t"}}
    both = {"kind": "xml_join", "queries": {"any": _body(BASE), "titled": _body(titled)}}
    assert len(plan_of(both).templates) == 1
    assert pairs(titled, rows) == {("d0", "d2")}
    assert pairs(BASE, rows) == {("d0", "d2"), ("d1", "d2")}


def _body(query: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in query.items() if key != "kind"}


def test_2_equal_text_in_another_element_is_no_answer() -> None:
    """Another query of the same template asks for the other elements, so that their values are joined too."""
    crossed = documents("<p><k>1</k><t>2</t></p>", "<q><m>2</m><u>1</u></q>")
    other = {**BASE, "left": {"p": "/p", "t": "$p/t"}, "right": {"q": "/q", "u": "$q/u"}, "where": ["$t = $u"]}
    both = {"kind": "xml_join", "queries": {"one": _body(BASE), "other": _body(other)}}
    assert len(plan_of(both).templates) == 1
    assert pairs(BASE, crossed) == set()
    assert pairs(both, crossed) == set()
    assert pairs(both, documents("<p><k>1</k><t>2</t></p>", "<q><m>1</m><u>1</u></q>")) == {("d0", "d1")}


def test_3_values_of_two_items_are_not_of_one() -> None:
    query = {
        **BASE,
        "left": {"s": "/s", "i": "$s/i", "a": "$i/a", "b": "$i/b"},
        "right": {"q": "/q", "c": "$q/c", "d": "$q/d"},
        "where": ["$a = $c", "$b = $d"],
    }
    shop = "<s><i><a>1</a><b>2</b></i><i><a>3</a><b>4</b></i></s>"
    rows = documents(shop, "<q><c>1</c><d>4</d></q>", "<q><c>3</c><d>4</d></q>")
    assert pairs(query, rows) == {("d0", "d2")}


def test_4_an_unreturned_variable_changes_no_row() -> None:
    rows = documents("<p><k>1</k><k>1</k><t/><t/></p>", "<q><m>1</m><m>1</m></q>")
    more = {**BASE, "left": {**BASE["left"], "t": "$p/t"}}
    assert engine(BASE, rows) == engine(more, rows)
    assert len(engine(BASE, rows)) == 1


@pytest.mark.parametrize(
    ("gap", "operator", "answers"),
    [
        (5 * MICROS, "followed_by", 1),
        (5 * MICROS + 1, "followed_by", 0),
        (0, "followed_by", 0),
        (0, "join", 1),
        (5 * MICROS, "join", 1),
        (5 * MICROS + 1, "join", 0),
    ],
)
def test_5_bounds_of_time(gap: int, operator: str, answers: int) -> None:
    rows = documents("<p><k>1</k></p>", "<q><m>1</m></q>", step=gap)
    assert len(engine({**BASE, "operator": operator}, rows)) == answers


def test_6_join_gives_both_orders_and_no_document_with_itself() -> None:
    query = {**BASE, "operator": "join", "right": {"q": "/p", "m": "$q/k"}}
    rows = documents("<p><k>1</k></p>", "<p><k>1</k></p>")
    assert pairs(query, rows) == {("d0", "d1"), ("d1", "d0")}
    table = documents_table([{**row, "time": row["time"] + 4_500_000} for row in rows])  # 5 s is a border
    plan = plan_of(query)
    by_run = [run_plan(plan, table, range(n, n + 1)).select(["left_id", "right_id"]).to_pylist() for n in range(3)]
    assert [len(run) for run in by_run] == [0, 2, 0]
    assert {tuple(row.values()) for row in by_run[1]} == {("d0", "d1"), ("d1", "d0")}


def test_7_names_prefixes_and_order_change_nothing() -> None:
    one = {
        **BASE,
        "namespaces": {"x": "urn:n"},
        "left": {"p": "/x:p", "k": "$p/k", "t": "$p/t[a and b]"},
        "where": ["$k = $m", "normalize-space($t) = $q"],
    }
    other = {
        **BASE,
        "namespaces": {"y": "urn:n"},
        "left": {"z": "/y:p", "a": "$z/t[b][a]", "b": "$z/k"},
        "right": {"w": "/q", "v": "$w/m"},
        "where": ["$w = normalize-space($a)", "$v = $b"],
    }
    assert plan_of(one).joins[0].hash == plan_of(other).joins[0].hash
    assert plan_of(one).templates == plan_of(other).templates
    rows = documents(
        "<n:p xmlns:n='urn:n'><k>1</k><t><a/><b> x</b></t></n:p>",
        "<m:p xmlns:m='urn:n'><k>1</k><t><b>x</b><a/></t><t>y</t></m:p>",
        "<q>x<m>1</m></q>",
        "<q><m>1</m></q>",
    )
    right = {"q": "/q", "m": "$q/m", "u": "$q/@u"}
    texts = ["$k = $m", "normalize-space($t) = $u"]
    one |= {"right": right, "where": texts, "return": {"text": "$t"}}
    other |= {
        "right": {"w": "/q", "n": "$w/@u", "v": "$w/m"},
        "where": ["$n = normalize-space($a)", "$b = $v"],
        "return": {"text": "$a"},
    }
    assert plan_of(one).templates == plan_of(other).templates
    assert engine(one, rows) == engine(other, rows) == set()
    rows[2]["xml"] = "<q u='x'><m>1</m></q>"
    assert engine(one, rows) == engine(other, rows)
    assert {dict(row)["text"] for row in engine(one, rows)} == {" x", "x"}


def test_10_other_queries_keep_their_hashes(tmp_path: Path) -> None:
    def hashes(rows: str) -> dict[str, str]:
        (tmp_path / "topics.csv").write_text(f"what,days\n{rows}", encoding="utf-8")
        file = tmp_path / "topics.yaml"
        file.write_text(
            "name: topics\nkind: xml_join\nsource: feeds\neach: topics.csv\nqueries:\n  'same_{what}':\n"
            "    left: {p: /p, k: '$p/{what}'}\n    right: {q: /q, m: '$q/{what}'}\n    operator: join\n"
            "    where: [$k = $m]\n    within: '{days} days'\n"
        )
        plan: Any = compile_query(file, SCHEMA)
        return dict(plan.query_hashes)

    before, more = hashes("a,1\nb,2\n"), hashes("c,9\na,1\nb,3\n")
    assert before["same_a"] == more["same_a"]
    assert before["same_b"] != more["same_b"]
    assert set(more) == {"same_a", "same_b", "same_c"}


def test_10_one_query_more_than_10_000() -> None:
    """It takes nothing from the others, and brings its own rows."""
    table = feeds(60, 1.0, 1, 0)
    channel = dict.fromkeys(feed_queries(1, 0)[0], "channel_url")
    others = [row for row in feed_queries(11_000, 6) if {*row.values()} - {row["number"]} != {"channel_url"}][:10_000]
    before, alone, after = (
        compile_query({**feed_pattern("1 hour"), "each": each}, schema_of(table, roles=("event_time", "document")))
        for each in (
            others,
            [channel | {"number": "new"}],
            [*others[:5_000], channel | {"number": "new"}, *others[5_000:]],
        )
    )
    assert isinstance(before, XmlJoinPlan)
    assert isinstance(after, XmlJoinPlan)
    assert len(before.queries) == 10_000
    assert {name: one for name, one in after.query_hashes.items() if name != "query_new"} == before.query_hashes
    old_rows, own, rows = (run_plan(plan, table).sort_by("answer_id") for plan in (before, alone, after))
    assert old_rows.num_rows > 1_000
    assert own.num_rows > 0
    assert rows.equals(pa.concat_tables([old_rows, own]).sort_by("answer_id"))


def test_rows_of_each_are_not_read_through_a_link(tmp_path: Path) -> None:
    """A pattern file reads nothing outside of its own folder."""
    (tmp_path / "secret.csv").write_text("what,days\na,1\n")
    folder = tmp_path / "patterns"
    folder.mkdir()
    (folder / "topics.csv").symlink_to(tmp_path / "secret.csv")
    (folder / "topics.yaml").write_text(
        "name: topics\nkind: xml_join\nsource: feeds\neach: topics.csv\nqueries: {'same_{what}': {}}\n"
    )
    with pytest.raises(PatternErrors, match="is a link out of the pattern's folder"):
        compile_query(folder / "topics.yaml", SCHEMA)


def test_12_text_is_compared_code_point_by_code_point() -> None:
    spaced = {**BASE, "where": ["normalize-space($k) = normalize-space($m)"]}
    for left, right, plain, normalised in (
        ("a b", "a\u00a0b", 0, 0),
        ("\u00e9", "e\u0301", 0, 0),
        ("a", "A", 0, 0),
        (" a\n b ", "a b", 0, 1),
        ("a", "a", 1, 1),
    ):
        rows = documents(f"<p><k>{left}</k></p>", f"<q><m>{right}</m></q>")
        assert len(engine(BASE, rows)) == plain
        assert len(engine(spaced, rows)) == normalised


@pytest.mark.parametrize(("test", "answers"), [("price != 10", {"d0"}), ("not(price = 10)", {"d0", "d2"})])
def test_13_comparisons_with_numbers(test: str, answers: set[str]) -> None:
    prices = ("<price>free</price>", "<price>10.0</price>", "")
    rows = documents(*(f"<p><k>1</k>{price}</p>" for price in prices), "<q><m>1</m></q>")
    query = {**BASE, "left": {"p": f"/p[{test}]", "k": "$p/k"}}
    assert {left for left, _ in pairs(query, rows)} == answers


def test_14_the_default_namespace_is_for_elements() -> None:
    query = {**BASE, "left": {"p": "//entry", "k": "$p/@k"}}
    rows = documents('<entry xmlns="urn:a" k="1"/>', "<q><m>1</m></q>")
    assert pairs(query, rows) == set()
    right = {"q": "/*:q", "m": "$q/*:m"}
    assert pairs({**query, "namespaces": {"": "urn:a"}, "right": right}, rows) == {("d0", "d1")}


def test_15_hostile_documents_are_left_out_and_named() -> None:
    bomb = "<!DOCTYPE p [" + "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9)) + "]><p>&e9;</p>"
    hostile = {
        "xml_doctype": [bomb, '<!DOCTYPE p SYSTEM "file:///etc/passwd"><p/>', "<!-- x --><!DOCTYPE p><p"],
        "xml_too_deep": ["<p>" * 257 + "</p>" * 257, "<p>" * 300],
        "xml_too_large": [f"<p>{'x' * (MAX_BYTES - 6)}</p>"],
        "xml_not_well_formed": ["", "<p>", "<p/><p/>", "<p>&x;</p>", "<n:p/>", "<!-- a -- b --><!DOCTYPE p><p/>", "\0"],
    }
    rows = documents("<p><k>1</k></p>", "<q><m>1</m></q>")
    for rule, texts in hostile.items():
        for text in texts:
            rows.append({"id": f"x{len(rows)}", "time": 0, "xml": text})
            with pytest.raises(BrokenDocumentError) as broken:
                Reader().root(text)
            assert broken.value.rule == rule == broken_rule(text)
    with pytest.warns(
        DocumentWarning, match=r"3 xml_doctype, 7 xml_not_well_formed, 2 xml_too_deep, 1 xml_too_large\): 'x2'"
    ):
        assert evaluate(BASE, documents_table(rows)).num_rows == 1
    assert Reader().root(f"<p>{'x' * (MAX_BYTES - 7)}</p>").tag == "p"
    assert Reader().root("<p>" * 256 + "</p>" * 256).tag == "p"
    assert Reader().root('<p xmlns="not a uri" xml:id="1 2"/>').tag == "{not a uri}p"


def test_15_nothing_is_fetched() -> None:
    """Whatever a document refers to: a DTD, an inclusion, a style sheet or a schema."""
    asked: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        at = f"http://127.0.0.1:{server.server_port}"
        good = [
            f'<?xml-stylesheet href="{at}/style.xsl" type="text/xsl"?><p><k>1</k></p>',
            f'<p xmlns:x="http://www.w3.org/2001/XInclude"><k>1</k><x:include href="{at}/part.xml"/></p>',
            f'<p xmlns:x="http://www.w3.org/2001/XMLSchema-instance" x:noNamespaceSchemaLocation="{at}/p.xsd">'
            "<k>1</k></p>",
        ]
        bad = [
            f'<!DOCTYPE p SYSTEM "{at}/p.dtd"><p><k>1</k></p>',
            f'<!DOCTYPE p [<!ENTITY e SYSTEM "{at}/e.txt">]><p><k>&e;</k></p>',
        ]
        answered = pairs(BASE, documents(*good, *bad, "<q><m>1</m></q>"))
        assert answered == {(f"d{n}", "d5") for n in range(3)}
        with pytest.raises(HTTPError):
            urlopen(f"{at}/listens")
        server.shutdown()
    assert asked == ["/listens"]


def test_16_text_is_data() -> None:
    rows = documents("<p><k>'; --</k><b>{what}</b></p>", "<q><m>'; --</m><b>{what}</b></q>")
    query = {
        "kind": "xml_join",
        "each": [{"what": "k", "other": "m", "text": "{what}"}, {"what": "b", "other": "b", "text": "'; --"}],
        "queries": {
            "q_{what}": {
                **_body(BASE),
                "left": {"p": '/p[b = "{text}"]', "k": "$p/{what}"},
                "right": {"q": "/q", "m": "$q/{other}"},
            }
        },
    }
    assert {dict(row)["query"] for row in engine(query, rows)} == {"q_k"}


def test_hostile_bytes_do_not_crash() -> None:
    """Texts made of pieces of documents are parsed, or refused by the rule that expat gives too."""
    pieces = (
        *("<p>", "</p>", "<p/>", "<!--", "-->", "<![CDATA[", "]]>", "&lt;", "&x;", "&#1;", "x", "<", "a='1'", "<n:p>"),
        *("\u00e9", "\ufeff", "]>", " ", "<?a b?>", "<?xml version='1.0'?>", "<!DOCTYPE p>", "<!DOCTYPE p ["),
        "<p xmlns:n='u'>",
    )
    reader, random = Reader(), Random(1)
    good = 0
    for _ in range(4_000):
        text = "".join(random.choice(pieces) for _ in range(random.randint(1, 7)))
        try:
            reader.root(text)
            rule = None
        except BrokenDocumentError as error:
            rule = error.rule
        assert rule == broken_rule(text), text
        good += rule is None
    assert good > 20


def test_documents_that_are_no_text_are_refused() -> None:
    table = documents_table(documents("<p/>"))
    with pytest.raises(PatternErrors, match="TYPE_MISMATCH"):
        evaluate(BASE, table.set_column(2, "document", pa.array([1])))
    with pytest.raises(Exception, match="no column 'document'"):
        evaluate(BASE, table.drop_columns(["document"]))
    with pytest.raises(Exception, match="has a NULL"):
        evaluate(BASE, table.set_column(2, "document", pa.array([None], pa.string())))


def test_no_documents_no_rows() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluate(BASE, documents_table([])).num_rows == 0
