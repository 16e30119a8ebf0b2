"""What must come of each hostile document: a document whose text is no longer than its bytes, or one of the four rules;
of a file rows or an error with words. Nothing is ever fetched.

Open-ended: `make fuzz KIND=documents SECONDS=600`; a number of them: `python -m tests.random.fuzz --kind documents
--documents 100000 --seconds 3600`.
"""

from __future__ import annotations

import gzip
import json
import resource
import socket
import tempfile
import threading
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.random.hostile_documents import hostile
from trendlake.cep_core import EventSchema, compile_query, run_plan
from trendlake.cep_core.documents.document import RULES, Reader, broken_rules
from trendlake.cep_core.errors import DocumentWarning
from trendlake.cep_core.events.schema import TIME_TYPE
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.errors import SourceFileError
from trendlake.pipelines.ingest.readers.xml_files import read_documents

PATIENCE = 10.0
"""Seconds of processor time that a document may take."""
MEMORY = 6_000_000_000
"""Bytes of addresses the open-ended search may take: beyond it, MemoryError."""
CHUNK = 200
"""Documents judged together."""
QUERY: dict[str, Any] = {
    "kind": "xml_join",
    "left": {"a": "//*", "x": "$a//@*"},
    "right": {"b": "//*[@x = 1 or not(. = 't')]", "y": "$b//@*"},
    "operator": "join",
    "where": ["normalize-space($x) = $y", "$a = $b"],
    "within": "1 hour",
    "limit_per_document": 100_000_000,
    "return": {},
}
SCHEMA = EventSchema({"event_id": "string", "event_time": "timestamp", "document": "string"}, document="document")


@dataclass
class Judged:
    """How many were judged, by sort and by what came of them; `slowest`: processor seconds and its number."""

    of_table: Counter[tuple[str, str]] = field(default_factory=Counter)
    of_files: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, int] = (0.0, -1)

    def lines(self) -> list[str]:
        rules = Counter[str]()
        for (_, rule), count in self.of_table.items():
            rules[rule] += count
        table = ", ".join(f"{rule} {count:,}" for rule, count in rules.most_common())
        files = ", ".join(f"{what} {count:,}" for what, count in self.of_files.most_common())
        slowest = f"the slowest document {self.slowest[0]:.2f} s (number {self.slowest[1]})"
        return [f"{rules.total():,} documents: {table}", f"as files: {files}", slowest]


class Hostile(AssertionError):  # noqa: N818 - it is one
    """What came of a document was neither a document nor a rule."""


def column(texts: Sequence[bytes]) -> pa.Array:
    """Bytes as a column of texts, as a Parquet file gives them: nobody has looked whether they are UTF-8."""
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def judge(numbers: Sequence[int], port: int, folder: Path, contract: Contract, judged: Judged) -> None:
    """Documents of a table through the rules and the engine, and each as a file. Raises Hostile."""
    drawn = [hostile(number, port) for number in numbers]
    documents = column([raw for _, raw in drawn])
    rules: list[str | None] = []
    for number, (sort, raw) in zip(numbers, drawn, strict=True):
        began = time.process_time()
        rule = _rule(number, documents.slice(len(rules), 1))
        rules.append(rule)
        _as_file(number, raw, folder, contract, judged)
        seconds = time.process_time() - began
        judged.slowest = max(judged.slowest, (seconds, number))
        if seconds > PATIENCE:
            raise Hostile(f"number {number}, {sort}: {seconds:.0f} s")
        judged.of_table[sort, rule or "a document"] += 1
        if rule is None:
            _looked_at(number, raw)
    _engine(numbers, documents, rules)


def _rule(number: int, document: pa.Array) -> str | None:
    try:
        (rule,) = broken_rules(document).to_pylist()
    except Exception as error:
        raise Hostile(f"number {number}: {type(error).__name__}: {error}") from error
    if rule is not None and rule not in RULES:
        raise Hostile(f"number {number}: the rule {rule}")
    return str(rule) if rule is not None else None


def _looked_at(number: int, raw: bytes) -> None:
    """No text comes from elsewhere, and none grows."""
    root = Reader().root(raw.decode("utf-8"))
    text = "".join(root.itertext()) + "".join(value for node in root.iter() for value in node.attrib.values())
    if len(text.encode()) > len(raw) or "root:x:0" in text:
        raise Hostile(f"number {number}: a text of {len(text):,} characters from {len(raw):,} bytes")


def _engine(numbers: Sequence[int], documents: pa.Array, rules: Sequence[str | None]) -> None:
    """The rows of all are those of the documents alone; the engine leaves the others out, with a warning."""
    plan: Any = compile_query(QUERY, SCHEMA)
    times = pa.array(range(len(numbers)), pa.int64()).cast(TIME_TYPE)
    ids = pa.array([str(number) for number in numbers])
    table = pa.table({"event_id": ids, "event_time": times, "document": documents})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DocumentWarning)
        try:
            whole = run_plan(plan, table)
        except Exception as error:
            raise Hostile(f"numbers {numbers[0]} to {numbers[-1]}: {type(error).__name__}: {error}") from error
    alone = run_plan(plan, table.filter(pc.is_null(pa.array(rules, pa.string()))))
    if whole.num_rows != alone.num_rows or set(whole["answer_id"].to_pylist()) != set(alone["answer_id"].to_pylist()):
        raise Hostile(f"numbers {numbers[0]} to {numbers[-1]}: {whole.num_rows} rows, {alone.num_rows} of documents")


def _as_file(number: int, raw: bytes, folder: Path, contract: Contract, judged: Judged) -> None:
    """As a file of its own, some packed, some of those cut."""
    r = Random(-number - 1)
    name, content = "one.xml", raw
    if r.random() < 0.1:
        name, content = "one.xml.gz", gzip.compress(raw, 1)
        content = content[: r.randrange(len(content) + 1)] if r.random() < 0.5 else content
    elif r.random() < 0.02:
        name, content = "one.zip", zlib.compress(raw)
    path = folder / name
    path.write_bytes(content)
    try:
        rows = read_documents(path, contract).num_rows
    except SourceFileError:
        judged.of_files["refused with words"] += 1
    except Exception as error:
        raise Hostile(f"number {number}, as {name}: {type(error).__name__}: {error}") from error
    else:
        judged.of_files["read" if rows else "read, without documents"] += 1


@contextmanager
def listening() -> Iterator[tuple[int, list[Any]]]:
    """A port of this machine, and who has asked there."""
    asked: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    connection, address = server.accept()
                except OSError:
                    return
                asked.append(address)
                connection.close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield server.getsockname()[1], asked
        time.sleep(0.01)
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def contract_in(folder: Path) -> Contract:
    """Of files that are one document each."""
    file = folder / "hostile.yaml"
    said = {"idPath": "@x", "timePath": "@x", "timeFormat": "epoch_seconds", "corrections": "replace"}
    roles = {"event_id": "string", "event_time": "timestamp", "document": "string"}
    columns = [
        {
            "name": role,
            "logicalType": kind,
            "required": True,
            "customProperties": [{"property": "eventRole", "value": role}],
        }
        for role, kind in roles.items()
    ]
    table = {
        "name": "hostile",
        "physicalType": "table",
        "properties": columns,
        "customProperties": [{"property": name, "value": value} for name, value in said.items()],
    }
    head = {"apiVersion": "v3.1.0", "kind": "DataContract", "id": "hostile", "version": "1.0.0", "name": "hostile"}
    file.write_text(json.dumps({**head, "status": "active", "schema": [table]}))
    return load_contract(file)


def search(seconds: float, first: int, most: int | None = None) -> int:
    """Documents from the number `first` million on, until the time is over, `most` are judged, or one is Hostile; the
    exit status."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    judged, until, number, failure = Judged(), time.monotonic() + seconds, first * 1_000_000, ""
    last = number + most if most is not None else None
    with tempfile.TemporaryDirectory() as name, listening() as (port, asked):
        folder = Path(name)
        contract = contract_in(folder)
        while time.monotonic() < until and not failure and (last is None or number < last):
            upto = number + CHUNK if last is None else min(number + CHUNK, last)
            try:
                judge(range(number, upto), port, folder, contract, judged)
            except Hostile as error:
                failure = str(error)
            number = upto
            if asked:
                failure = failure or f"before number {number}: somebody has asked at {asked[0]}"
    print("\n".join(f"# {line}" for line in [*judged.lines(), *([failure] if failure else [])]))
    return int(bool(failure))
