"""From a pattern file of kind xml_join to its plan. All mistakes are collected, each with its place, and raised
together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trendlake.cep_core.documents.path_tokens import NAME as XML_NAME
from trendlake.cep_core.documents.path_tokens import XML_NAMESPACE, Namespaces
from trendlake.cep_core.errors import (
    MAX_ERRORS,
    BadValueError,
    NotSupportedError,
    PatternErrors,
    TrendlakeError,
    TypeMismatchError,
    UnknownAttributeError,
    did_you_mean,
)
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.xml_join.compile.build import Builder
from trendlake.cep_core.xml_join.compile.each import (
    MOST_QUERIES,
    FillError,
    Row,
    Table,
    filled,
    namer,
    picker,
    read_each,
)
from trendlake.cep_core.xml_join.compile.model import QUERY_KEYS, XmlJoinPattern
from trendlake.cep_core.xml_join.compile.plan import XmlJoinPlan
from trendlake.cep_core.xml_join.compile.query import Query
from trendlake.cep_core.xml_join.compile.read_query import NAME, NAME_RULE, Key, QueryReader

ONE_ROW = Table((), ((),))


def compile_xml_join(pattern: XmlJoinPattern, schema: EventSchema) -> XmlJoinPlan:
    """Check `pattern` against `schema` and compile it. Raises PatternErrors with every mistake."""
    return _Checker(pattern, schema).plan()


class _TooManyMistakes(Exception):  # noqa: N818 - it only ends the search for more
    pass


class _Checker:
    def __init__(self, pattern: XmlJoinPattern, schema: EventSchema) -> None:
        self.pattern, self.schema = pattern, schema
        self.source = pattern.document
        self.errors: list[TrendlakeError] = []
        self.row: tuple[Table, int] | None = None
        self.builder = Builder(
            (schema.event_id, schema.event_time, schema.document, dict(schema.columns).get(schema.event_id))
        )
        self.names: dict[str, int] = {}
        self.joins: dict[str, int] = {}
        self.returned: dict[str, None] = {}

    def report(self, error: TrendlakeError, path: Key, offset: int = 0, width: int = 0, key: bool = False) -> None:
        """Collects a mistake at `path`. The texts of a query made by `each` are not those of the file: no offset."""
        row = ""
        if self.row is not None:
            offset = width = 0
            table, number = self.row
            row = f" ({table.place_of(number)})"
        place = self.source.place(path, key=key, offset=offset, width=width)
        self.errors.append(type(error)(f"{error.message}{row}", place=place, hint=error.hint))
        if len(self.errors) > MAX_ERRORS:
            raise _TooManyMistakes

    def plan(self) -> XmlJoinPlan:
        try:
            self._columns()
            self._queries()
        except _TooManyMistakes:
            pass
        if self.errors:
            raise PatternErrors(self.errors)
        builder = self.builder
        return XmlJoinPlan(
            definitions=tuple(builder.paths),
            sides=tuple(builder.sides),
            joins=tuple(builder.rows),
            queries=tuple(self.names.items()),
            templates=tuple(builder.texts),
            returned=tuple(self.returned),
            limit=self.pattern.limit_per_document,
            schema=self.schema,
            blocks=2 * len(self.names),
        )

    def _columns(self) -> None:
        schema, families = self.schema, self.schema.families
        if not schema.document:
            way = "give one column of its contract: customProperties: [{property: eventRole, value: document}]"
            self.report(NotSupportedError("the source has no column of XML documents", hint=way), ("source",))
            return
        for role, wanted in (("event_id", None), ("event_time", "timestamp"), ("document", "string")):
            name = str(getattr(schema, role))
            if name not in families:
                hint = did_you_mean(name, families)
                self.report(UnknownAttributeError(f"the source has no column '{name}' ({role})", hint=hint), ())
            elif wanted is not None and families[name] not in (wanted, "null"):
                self.report(TypeMismatchError(f"column '{name}' ({role}) is no {wanted} but a {families[name]}"), ())
            elif role == "event_id" and families[name] == "other":
                self.report(NotSupportedError(f"the id '{name}' is neither text nor a number"), ())

    def _namespaces(self) -> Namespaces:
        for prefix, uri in self.pattern.namespaces.items():
            path = ("namespaces", prefix)
            if prefix and not re.fullmatch(XML_NAME, prefix):
                self.report(BadValueError(f"'{prefix}' is no prefix"), path, key=True)
            elif prefix == "xmlns" or (prefix == "xml") != (uri == XML_NAMESPACE):
                self.report(BadValueError("xml and xmlns are reserved, with their namespaces"), path, key=True)
            elif prefix and not uri:
                self.report(BadValueError("a prefix has a namespace"), path)
        return Namespaces(tuple(sorted(self.pattern.namespaces.items())))

    def _queries(self) -> None:
        pattern = self.pattern
        reader = QueryReader(self._namespaces(), self.report)
        given = self.source.data
        alone = [key for key in QUERY_KEYS if key in given]
        if pattern.queries is None:
            if pattern.each is not None:
                self.report(
                    BadValueError("'each' fills the queries under 'queries', and there are none"), ("each",), key=True
                )
            body = {key: _plain(given[key]) for key in alone}
            query = reader.read(body, ())
            if query is not None:
                self.names[pattern.name] = self._join(query)
            return
        for key in alone:
            self.report(BadValueError(f"'{key}' belongs to each query under 'queries'"), (key,), key=True)
        if not isinstance(pattern.queries, Mapping) or not pattern.queries:
            self.report(BadValueError("queries: expected names and queries"), ("queries",))
            return
        table = ONE_ROW
        if pattern.each is not None:
            try:
                table = read_each(pattern.each, self.source)
            except TrendlakeError as error:
                self.errors.append(error)
                return
        if len(pattern.queries) * len(table.rows) > MOST_QUERIES:
            count = len(pattern.queries) * len(table.rows)
            self.report(
                BadValueError(f"{count:,} queries; a file has {MOST_QUERIES:,} at most"), ("queries",), key=True
            )
            return
        for name, body in pattern.queries.items():
            self._expand(reader, str(name), body, table)

    def _expand(self, reader: QueryReader, name: str, body: Any, table: Table) -> None:
        """The queries that one entry makes. Rows with the same values of the fields that its texts use make one."""
        at: Key = ("queries", name)
        of_each = self.pattern.each is not None
        value_of = picker(body, table) if of_each else _nothing
        title_of = namer(name, table) if of_each else lambda row: name
        compiled: dict[object, int | None] = {}
        for number, row in enumerate(table.rows):
            self.row = (table, number) if of_each else None
            try:
                title = title_of(row)
                if (values := value_of(row)) not in compiled:
                    one = filled(body, table.values(row)) if of_each else body
                    compiled[values] = self._compiled(reader, one, at)
            except FillError as error:
                self.report(error.error, at, key=True)
                self.row = None
                return
            join = compiled[values]
            if not NAME.fullmatch(title):
                self.report(BadValueError(f"'{title}' is no name of a query: {NAME_RULE}"), at, key=True)
            elif title in self.names:
                hint = "put a field that tells its rows apart into the name, such as same_{what}" if of_each else None
                self.report(BadValueError(f"two queries are called '{title}'", hint=hint), at, key=True)
            elif join is not None:
                self.names[title] = join
        self.row = None

    def _compiled(self, reader: QueryReader, body: Any, at: Key) -> int | None:
        """The join of a query. Most of many thousand queries are written as one before."""
        text = repr(body)
        if text not in self.joins:
            query = reader.read(body, at)
            if query is None:
                return None  # its mistakes have a place of their own each time
            self.joins[text] = self._join(query)
        return self.joins[text]

    def _join(self, query: Query) -> int:
        for column, _ in query.columns:
            self.returned.setdefault(column)
        return self.builder.add(query)


def _nothing(_: Row) -> object:
    return None


def _plain(node: Any) -> Any:
    from trendlake.cep_core.yaml.source import plain

    return plain(node)
