"""scripts/prose.py finds what each of its rules is about, and the documents and docstrings keep them."""

from __future__ import annotations

import pytest

from scripts.prose import (
    MOST_WORDS,
    PACKAGES,
    ROOT,
    RULES,
    broken_rules,
    check_file,
    check_help,
    check_module,
    check_page,
    docstrings,
    help_texts,
    modules,
    newest_section,
    pages,
)

EXAMPLES = {
    "subject clause": ("Who keeps a server gets its events.", "A server gets the events. Who writes it?"),
    "inversion": ("So is a row without a time.", "Not all rows count. So that is a row."),
    "of which": ("A row of which one counts.", "The row in which it is."),
    "what that": ("Say what it is that failed.", "Say what failed."),
    "told": ("Airflow is told the version.", "Airflow gets the version."),
    "set apart": ("Broken rows are set apart.", "Broken rows are quarantined. Set the option."),
    "passed over": ("Known rows are passed over.", "Known rows are skipped. Pass the option."),
    "mend": ("Mend the row.", "Repair the row. I recommend it."),
    "anew": ("Windows are computed anew.", "Windows are computed again, for a new version."),
    "beside": ("The file beside it.", "The file next to it. Besides, it is short."),
    "lies": ("The table lies on a disk.", "The table is on a disk. It relies on Delta."),
    "stands": ("The name stands in the file.", "The name is in the file. It is standard."),
    "nobody": ("Nobody else may write.", "No other process may write."),
    "is there": ("The key is there already.", "The key exists already. There is a key."),
    "there is not": ("A name that there is not.", "An unknown name."),
    "to be had": ("No binary is to be had.", "No binary is available."),
    "need be": ("Nothing need be done.", "Nothing has to be done."),
    "save for": ("All save for one.", "All except one. Save the file."),
    "by name": ("It is refused by name.", "It is refused. Sort by name."),
    "says so": ("The record says so.", "The record says why."),
    "word of the command": ("Two words of the command.", "Two words of the sentence."),
    "made whole": ("The file is written whole.", "The file is written atomically."),
    "archaic": ("The end thereof.", "The end of it."),
}


def rules_broken(text: str) -> list[str]:
    return [finding.rule for finding in check_page(text, "page")]


@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_a_rule_finds_its_fault(rule: str) -> None:
    bad, good = EXAMPLES[rule]
    assert rules_broken(bad) == [rule]
    assert rules_broken(good) == []


def test_a_long_sentence_is_found() -> None:
    words = " ".join(["word"] * MOST_WORDS)
    assert rules_broken(f"{words}.") == []
    assert rules_broken(f"{words} more.") == ["length"]
    assert rules_broken(f"{words}. {words}; {words}: {words}.") == []


def test_code_and_addresses_are_no_prose() -> None:
    page = "```text\nThe rows were told anew.\n```\nRun `told anew` and see [the page](told/anew.md).\n\n# Told anew\n"
    assert rules_broken(page) == []
    assert rules_broken("```sh\ntold\n```\n\nIt was told.") == ["told"]


def test_items_and_cells_are_sentences_of_their_own() -> None:
    item = " ".join(["word"] * (MOST_WORDS // 2))
    assert rules_broken(f"- {item}\n- {item}\n  {item}\n1. {item}") == []
    assert rules_broken(f"| {item} | {item} | {item} |") == []
    assert rules_broken("| a | it was told |") == ["told"]
    assert rules_broken(f"{item}\n{item}\n{item}") == ["length"]


def test_a_finding_names_its_line() -> None:
    (finding,) = check_page("# Title\n\nFine.\n\n- Fine.\n- It was\n  told.\n", "page.md")
    assert str(finding) == "page.md:6: told: 'told': write reported, logged, sent or named"


def test_older_releases_are_left_as_they_were() -> None:
    assert newest_section("# Changelog\n\n## New\n\na\n\n## Old\n\ntold\n") == "# Changelog\n\n## New\n\na\n\n"


@pytest.mark.parametrize(("name", "text"), list(pages()), ids=lambda value: value if value.endswith(".md") else "")
def test_documents_keep_the_rules(name: str, text: str) -> None:
    assert [str(finding) for finding in check_page(text, name)] == []


def test_help_keeps_the_rules() -> None:
    names = {name for name, text in help_texts() if text}
    assert {"trendlake run", "trendlake source delete", "trendlake source delete --where"} <= names
    assert [str(finding) for finding in check_help()] == []


MODULE = '''"""The module.

What it does is told here.

    an example: told

- It was
  told.
"""

NUMBER = 1
"""Rows that were told."""
text = "told"  # told


class Place:
    """The file beside it: `told`."""

    line: int
    """It lies there."""

    def last(self) -> str:
        """The last
        line of it, told."""
        return """told"""
'''


def test_docstrings_are_checked_and_other_texts_are_not() -> None:
    assert [str(finding).partition(": write")[0] for finding in check_module(MODULE, "m.py")] == [
        *("m.py:3: subject clause: 'What'", "m.py:3: told: 'told'", "m.py:7: told: 'told'", "m.py:12: told: 'told'"),
        *("m.py:17: beside: 'beside'", "m.py:20: lies: 'lies'", "m.py:23: told: 'told'"),
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_keep_the_rules(package: str) -> None:
    files = [path for path in modules() if path.is_relative_to(ROOT / package)]
    assert any(True for path in files for _ in docstrings(path.read_text()))
    assert [str(finding) for path in files for finding in check_file(path, str(path.relative_to(ROOT)))] == []


def test_broken_rules_give_advice() -> None:
    assert list(broken_rules("Mend it.")) == [("mend", "Mend", "fix, repair or correct")]
