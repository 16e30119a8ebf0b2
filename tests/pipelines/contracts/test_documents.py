"""The role `document` of a contract, and the rules that come with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.document_lake import CONTRACT
from trendlake.cep_core.documents.document import RULES
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.errors import ContractErrors

TABLE = "    customProperties:\n"


def load(folder: Path, text: str) -> Contract:
    (folder / "news.yaml").write_text(text)
    return load_contract(folder / "news.yaml")


def test_its_rules(tmp_path: Path) -> None:
    contract = load(tmp_path, CONTRACT.format(name="news"))
    assert [rule.name for rule in contract.rules if rule.kind == "xml"] == list(RULES)
    schema = contract.event_schema()
    assert (schema.document, schema.event_type, schema.types) == ("document", "", None)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (TABLE, f"{TABLE}      - {{property: eventType, value: News}}\n", "a source of documents has no event type"),
        (TABLE, f"{TABLE}      - {{property: documentPaht, value: //item}}\n", "did you mean 'documentPath'"),
        ("value: document}", "value: documnet}", "did you mean 'document'"),
        (
            "      - name: document\n        logicalType: string",
            "      - name: document\n        logicalType: integer",
            "document has type string",
        ),
    ],
)
def test_mistakes(tmp_path: Path, before: str, after: str, message: str) -> None:
    text = CONTRACT.format(name="news")
    assert before in text
    with pytest.raises(ContractErrors, match=message):
        load(tmp_path, text.replace(before, after))


def test_paths_without_documents(tmp_path: Path) -> None:
    """They would be without effect."""
    text = CONTRACT.format(name="news").replace("value: document}", "value: event_type}")
    with pytest.raises(ContractErrors, match="'idPath' is not read here"):
        load(tmp_path, text.replace(TABLE, f"{TABLE}      - {{property: idPath, value: guid}}\n"))
