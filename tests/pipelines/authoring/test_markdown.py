"""Airflow's page of a DAG is Markdown: texts of others are shown in it as they are, and none of them is a link, a
picture, HTML, or the end of a table or of a block of code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.markdown import Markdown

from tests.support.hostile_texts import HOSTILE
from tests.support.own_source import FALLING, pair_of_a_batch, start
from trendlake.cep_core.load import load_pattern
from trendlake.cep_core.yaml.source import plain as plain_data
from trendlake.cep_core.yaml.source import read_yaml, yaml_text
from trendlake.pipelines.authoring.markdown import block, cell, code, plain
from trendlake.pipelines.authoring.pattern_page import batch_page, pattern_page
from trendlake.pipelines.authoring.validate import compiled_quietly
from trendlake.pipelines.contracts.pattern_source import source_contract
from trendlake.pipelines.project.paths import find_project

TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(), st.text("\\`*_[]()<>&#|~!-+=.1 \n\t:/ax\"'$"))
ACTIVE = {"link_open", "image", "html_inline", "html_block", "strong_open", "em_open", "s_open", "heading_open"}


def tokens(text: str) -> Iterator[Any]:
    """What the Markdown holds, with what is in it."""
    for token in Markdown(text).parsed:
        yield token
        yield from token.children or ()


def said(text: str) -> str:
    """The words of the Markdown, in one line."""
    words = [
        token.content or "\n"
        for token in tokens(text)
        if token.type in ("text", "text_special", "softbreak", "code_inline", "fence", "paragraph_close")
    ]
    return in_one_line("".join(words))


def in_one_line(text: str) -> str:
    """Without the signs that no page shows, in whose place is another."""
    return " ".join("".join(" " if sign < " " or sign in "\x7f\ufffd" else sign for sign in text).split())


@given(TEXTS)
def test_a_text_is_shown_as_it_is(text: str) -> None:
    """Whatever signs of Markdown it holds, in paragraphs and in one line."""
    for shown in (plain(text), cell(text)):
        assert not ACTIVE & {token.type for token in tokens(shown)}
        assert {token.type for token in Markdown(shown).parsed} <= {"paragraph_open", "inline", "paragraph_close"}
        assert said(shown) == in_one_line(text)


@given(TEXTS.filter(in_one_line), TEXTS)
def test_a_row_of_a_table_has_its_columns(name: str, text: str) -> None:
    """A name as code, and a text; no sign of theirs begins another column."""
    table = f"| a | b |\n|---|---|\n| {code(name)} | {cell(text)} |\n"
    cells = [list(token.children or ()) for token in Markdown(table).parsed if token.type == "inline"][2:]
    assert len(cells) == 2
    assert [token.type for token in cells[0]] == ["code_inline"]
    assert in_one_line(cells[0][0].content) == in_one_line(name)
    assert in_one_line("".join(token.content for token in cells[1])) == in_one_line(text)


@given(TEXTS)
def test_a_block_ends_where_it_ends(text: str) -> None:
    """Not at a fence in it."""
    parsed = [token for token in Markdown(f"{block(text)}\n\nend").parsed if token.type != "paragraph_open"]
    assert [token.type for token in parsed] == ["fence", "inline", "paragraph_close"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a pattern whose description, contract, columns and rules are hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    start(folder, folder / "trades.csv", "id,at,company,price\nt1,2026-01-05T09:00:00,A,10\n")
    project = find_project(folder)
    file = project.contract_path("trades")
    contract = plain_data(read_yaml(file).data)
    contract["schema"][0]["description"] = "\n\n".join(HOSTILE)
    columns = contract["schema"][0]["properties"]
    columns[2]["description"] = HOSTILE[0]
    columns[2]["logicalTypeOptions"] = {"pattern": "^[a|b]![x](http://127.0.0.1:9/p)`*$"}
    columns.append({"name": "<b>|`x`[y]![z]", "logicalType": "string", "physicalType": "string"})
    file.write_text(yaml_text(contract))
    pattern = project.patterns / "falling.yaml"
    pattern.write_text(FALLING + yaml_text({"description": "\n\n".join(HOSTILE), "owner": HOSTILE[1]}))
    loaded, plan = compiled_quietly(project, Path(pattern))
    return pattern_page(loaded, plan, [source_contract(project, "trades", ("falling",))], pattern.read_text())


def test_the_page_of_a_dag_holds_no_link_picture_or_html(page: str) -> None:
    """Its headings are its own, and each row of its table has three columns."""
    kinds = [token.type for token in tokens(page)]
    assert not {"link_open", "image", "html_inline", "html_block"} & set(kinds)
    assert kinds.count("heading_open") == 3
    assert kinds.count("td_open") == 3 * (kinds.count("tr_open") - 1)
    assert all(in_one_line(text) in said(page) for text in HOSTILE)


def test_the_page_of_a_batch_has_a_row_a_pattern(tmp_path: Path) -> None:
    """Of four columns, whatever owners and descriptions hold."""
    files = pair_of_a_batch(tmp_path)
    for file, text in zip(files, ("\n".join(HOSTILE), HOSTILE[6]), strict=True):
        file.write_text(file.read_text() + yaml_text({"description": text, "owner": text}))
    shown = batch_page("two", [load_pattern(file) for file in files])
    kinds = [token.type for token in tokens(shown)]
    assert not ACTIVE & set(kinds)
    assert (kinds.count("tr_open"), kinds.count("td_open")) == (3, 8)
    assert all(in_one_line(text) in said(shown) for text in HOSTILE)
