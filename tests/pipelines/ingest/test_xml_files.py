"""XML files as documents: what is cut, which encodings, which files are refused and how they are named."""

from __future__ import annotations

import gzip
import json
import random
import re
import socket
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lxml import etree

from trendlake.cep_core.documents.document import TOO_LARGE, broken_rules
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.errors import ContractErrors, SourceFileError
from trendlake.pipelines.ingest.documents import DocumentFiles
from trendlake.pipelines.ingest.readers import xml_files, xml_stream
from trendlake.pipelines.ingest.readers.xml_files import read_documents

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: source-news
version: 1.0.0
name: news
status: active
schema:
  - name: news
    physicalType: table
    customProperties:
{properties}
    properties:
      - name: ident
        logicalType: string
        required: true
        primaryKey: true
        unique: true
        customProperties: [{{property: eventRole, value: event_id}}]
      - name: at
        logicalType: timestamp
        required: true
        customProperties: [{{property: eventRole, value: event_time}}]
      - name: xml
        logicalType: string
        required: true
        customProperties: [{{property: eventRole, value: document}}]
"""
ITEM = "<item><guid>{0}</guid><pubDate>Tue, 10 Jun 2003 09:41:0{0} GMT</pubDate></item>"
FEED = f"<rss><channel>{ITEM.format(1)}{ITEM.format(2)}</channel></rss>"


def contract(folder: Path, **said: str) -> Contract:
    """Of a source whose documents are `item` elements, save for what is `said`."""
    values = {"documentPath": "//item", "idPath": "guid", "timePath": "pubDate", "timeFormat": "rfc822"} | said
    lines = [f"      - {{property: {name}, value: {json.dumps(value)}}}" for name, value in values.items() if value]
    file = folder / "news.yaml"
    file.write_text(CONTRACT.format(properties="\n".join(["      - {property: corrections, value: replace}", *lines])))
    return load_contract(file)


def read(folder: Path, content: bytes | str, name: str = "feed.xml", **said: str) -> list[dict[str, Any]]:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    rows: list[dict[str, Any]] = read_documents(path, contract(folder, **said)).to_pylist()
    return rows


def refusal(folder: Path, content: bytes | str, name: str = "feed.xml", **said: str) -> str:
    with pytest.raises(SourceFileError) as error:
        read(folder, content, name, **said)
    return str(error.value)


def test_elements_become_documents(tmp_path: Path) -> None:
    """With id and time, and the namespaces that are declared above them."""
    items = (
        "<item><guid a='b'> a\n1 </guid><pubDate>10 Jun 03 09:41 -0530</pubDate><n:by>&#xE9;</n:by></item>"
        "<item><guid>2</guid><pubDate>Tue, 10 Jun 2003 09:41:01 EST</pubDate>"
        "<t><![CDATA[<b>]]><!-- c -->&amp;</t></item>"
    )
    rows = read(tmp_path, f"<?xml version='1.0'?><!-- <item/> --><rss xmlns:n='urn:n'><channel>{items}</channel></rss>")
    assert [row["ident"] for row in rows] == ["a 1", "2"]
    assert [row["at"].isoformat() for row in rows] == ["2003-06-10T15:11:00+00:00", "2003-06-10T14:41:01+00:00"]
    first, second = (etree.fromstring(row["xml"]) for row in rows)
    assert first.findtext("{urn:n}by") == "é"
    assert second.findtext("t") == "<b>&"


def test_paths(tmp_path: Path) -> None:
    """Attributes, predicates, any namespace; the outermost of nested elements; the root without documentPath."""
    atom = "<feed xmlns='urn:atom'><entry id='e1'><d k='x'>1</d><d k='y'>2</d><entry id='e2'/></entry></feed>"
    said = {
        "documentPath": "/*:feed//*:entry",
        "idPath": "@id",
        "timePath": "*:d[@k = 'y']",
        "timeFormat": "epoch_seconds",
    }
    assert [(row["ident"], row["at"].timestamp()) for row in read(tmp_path, atom, **said)] == [("e1", 2.0)]
    (row,) = read(
        tmp_path,
        "<a><id>7</id><t>2026-01-05T09:00:00+01:00</t></a>",
        documentPath="",
        idPath="id",
        timePath="t",
        timeFormat="",
    )
    assert (row["ident"], row["at"].isoformat()) == ("7", "2026-01-05T08:00:00+00:00")
    assert read(tmp_path, "<rss><channel/></rss>") == []


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"documentPath": "//item[@x]"}, "steps without predicates"),
        ({"documentPath": "$v/item"}, "begins at the document"),
        ({"idPath": "guid/text()"}, "text"),
        ({"timeFormat": "rfc"}, "unknown format 'rfc'"),
    ],
)
def test_mistakes_of_paths(tmp_path: Path, said: dict[str, str], message: str) -> None:
    with pytest.raises(ContractErrors, match=message):
        contract(tmp_path, **said)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252", "shift_jis"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    """The declared one, or that of the byte order mark."""
    letter = "ア" if encoding == "shift_jis" else "é"
    text = f"<?xml version='1.0' encoding='{encoding.removesuffix('-sig')}'?><rss>{ITEM.format(1)}</rss>"
    (row,) = read(tmp_path, text.replace("</item>", f"<t>{letter}</t></item>").encode(encoding))
    assert etree.fromstring(row["xml"]).findtext("t") == letter


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (FEED.replace("</channel>", "\n</chanel>"), r"xml_not_well_formed, line 2, column \d+"),
        (FEED[:-9], "xml_not_well_formed, line 1"),
        (b"", "xml_not_well_formed"),
        (b"PK no xml", "xml_not_well_formed, line 1"),
        (b"<rss>\n\n\xff</rss>", "xml_not_well_formed, line 3: its bytes are no text"),
        ("<rss><n:a/></rss>", "xml_not_well_formed, line 1"),
        ("<?xml version='1.0' encoding='rot13'?><rss/>", "declares the encoding 'rot13'"),
        ("<?xml version='1.0' encoding='utf-16'?><rss/>", "declares the encoding 'utf-16'"),
        ("<!-- -->\n<!DOCTYPE rss SYSTEM 'http://localhost:9/x.dtd'><rss/>", "xml_doctype, line 2"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "xml_doctype, line 1"),
        ("<rss>" + "<a>" * 257, "xml_too_deep, line 1"),
        ("<rss>&bomb;</rss>", "xml_not_well_formed, line 1"),
        (
            "<rss><item><guid>1</guid></item>\n<item><pubDate>x</pubDate><guid/></item></rss>",
            r"document 2 \(line 2\) has no id at guid; document 1 \(line 1\) has no time at pubDate; document 2 ",
        ),
        ("<rss><item><guid>1</guid><pubDate>10 Jun 2003 09:41 CEST</pubDate></item></rss>", "cannot be read as rfc822"),
    ],
)
def test_refused_files(tmp_path: Path, content: bytes | str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is named with its rule and place, and nothing is fetched."""
    monkeypatch.setattr(socket.socket, "connect", None)
    assert re.search(message, refusal(tmp_path, content))


def test_no_paths_no_files(tmp_path: Path) -> None:
    assert "has no timePath" in refusal(tmp_path, FEED, timePath="")


def test_compressed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a .zip each file is read; what unpacks to too much is refused, and so is what is broken."""
    assert len(read(tmp_path, gzip.compress(FEED.encode()), "feed.xml.gz")) == 2
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/1.xml", FEED)
        archive.writestr("b.rss", FEED.replace("guid>1", "guid>3"))
    content = (tmp_path / "all.zip").read_bytes()
    assert [row["ident"] for row in read(tmp_path, content, "all.zip")] == ["1", "2", "3", "2"]
    assert "cannot be read" in refusal(tmp_path, content[:-30], "all.zip")
    assert "cannot be read" in refusal(tmp_path, gzip.compress(FEED.encode())[:-9], "feed.xml.gz")
    monkeypatch.setattr(xml_files, "UNPACKED", 1_000_000)
    bomb = gzip.compress(b"<rss>" + b" " * 2_000_000 + b"</rss>")
    assert len(bomb) < 10_000
    assert "xml_unpacks_too_large" in refusal(tmp_path, bomb, "feed.xml.gz")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"{number}.xml", "<rss>" + " " * 400_000 + "</rss>")
    assert "xml_unpacks_too_large" in refusal(tmp_path, (tmp_path / "bomb.zip").read_bytes(), "bomb.zip")


def test_large_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte over 8 MiB is a row, for the quarantine; what takes far more is not read."""
    head, tail = "<item><guid>1</guid><pubDate>1 Jan 2026 00:00 Z</pubDate>", "</item>"
    parts = "".join(f"<p>{'x' * 100_000}</p>" for _ in range(83))
    fill = 8 * 1024 * 1024 + 1 - len((head + parts + "<q></q>" + tail).encode())
    (row,) = read(tmp_path, f"<rss>{head}{parts}<q>{'y' * fill}</q>{tail}</rss>")
    assert broken_rules(pa.array([row["xml"], row["xml"].replace("y", "", 1)])).to_pylist() == [TOO_LARGE, None]
    monkeypatch.setattr(xml_stream, "MOST_OF_DOCUMENT", 1 << 20)
    assert "xml_too_large, line 1" in refusal(tmp_path, f"<rss>{head}{parts}{tail}</rss>")


def hostile(rng: random.Random) -> str:
    """A document that is spoilt, at times."""
    parts = [
        "<a x='1'>",
        "</a>",
        "<b>",
        "</b>",
        "<c/>",
        "t",
        "&#65;",
        "&lt;",
        "<!-- c -->",
        "<?p i?>",
        "<![CDATA[<]]>",
        " ",
        "<n:a xmlns:n='u'>",
        "</n:a>",
        "é",
    ]
    text = "<r>" + "".join(rng.choices(parts, k=rng.randrange(12))) + "</r>"
    spoils = [
        "<",
        ">",
        "&",
        "\x00",
        "\x1f",
        "]]>",
        "<!DOCTYPE r>",
        "<!ENTITY",
        "&bomb;",
        "\ufffe",
        "<a",
        "--",
        "<?xml?>",
        "\x85",
    ]
    for _ in range(rng.randrange(3)):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(spoils) + text[at:]
    if rng.random() < 0.1:
        text = rng.choice(["<!-- a -->", " ", "<?p?>", "<!DOCTYPE r [<!ENTITY b 'c'>]>"]) * rng.randrange(30) + text
    return text if rng.random() > 0.02 else "<a>" * rng.randrange(250, 270) + text


def agrees(folder: Path, said: Contract, text: str) -> None:
    """A file is read exactly where its text keeps the rules of documents, to the same document."""
    path = folder / "one.xml"
    path.write_text(text, encoding="utf-8", newline="")
    (rule,) = broken_rules(pa.array([text])).to_pylist()
    try:
        rows = read_documents(path, said).to_pylist()
    except SourceFileError as error:
        message = str(error)
        if rule is not None:
            assert rule in message, (text, rule, message)
        else:
            assert "has no" in message or "is not a valid URI" in message, (text, message)
        return
    assert rule is None, text
    assert len(rows) == 1


def test_hostile_files(tmp_path: Path) -> None:
    """No crash, and the rules are those of documents in a table."""
    said = contract(tmp_path, documentPath="", idPath="@id", timePath="@id")
    rng = random.Random(22)
    for _ in range(2_000):
        agrees(tmp_path, said, hostile(rng))


def test_deliveries_of_a_folder(tmp_path: Path) -> None:
    """Files in the order of their names; a later one corrects; one that breaks, or contradicts itself, gives none."""
    folder = tmp_path / "feeds"
    (folder / "2026").mkdir(parents=True)
    corrected = FEED.replace("</item>", "<t>new</t></item>", 1)
    contradiction = f"<rss>{ITEM.format(3)}{ITEM.format(3).replace('</item>', '<t/></item>')}</rss>"
    texts = {
        "2026/a.xml": FEED,
        "2026/b.xml": FEED,
        "2026/c.rss": corrected,
        "d.xml": FEED[:-1],
        "e.atom": contradiction,
        "f.txt": "",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    files = DocumentFiles(folder, contract(tmp_path))
    files.check()
    deliveries = list(files.deliveries())
    assert [table.num_rows for table in deliveries] == [4, 2]
    assert [error.message.split(":")[0].rpartition("/")[2] for error in files.refused] == ["d.xml", "e.atom"]
    with pytest.raises(SourceFileError, match="2 of 5 files gave no documents"):
        files.raise_refused()
    (folder / "d.xml").unlink()
    (folder / "e.atom").unlink()
    whole = DocumentFiles(folder, contract(tmp_path)).table()
    assert sorted(whole["ident"].to_pylist()) == ["1", "2"]
    assert sum("new" in text for text in whole["xml"].to_pylist()) == 1
    same = DocumentFiles(folder, contract(tmp_path))
    assert same.feed == DocumentFiles(folder, contract(tmp_path)).feed
    (folder / "d.xml").write_text(FEED)
    assert same.feed != DocumentFiles(folder, contract(tmp_path)).feed
