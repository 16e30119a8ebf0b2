"""The columns of a file that could hold times, and the formats that read all of their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from trendlake.pipelines.contracts.null_words import USUAL
from trendlake.pipelines.contracts.time_formats import DATE_DIRECTIVES, DIRECTIVE, ISO, TimeFormat
from trendlake.pipelines.ingest.readers.cells import Cells, is_text
from trendlake.pipelines.ingest.readers.common_formats import candidates, read_all, without_alike
from trendlake.pipelines.ingest.readers.read_once import FileCells
from trendlake.pipelines.ingest.readers.refusals import Refusals, shown
from trendlake.pipelines.ingest.readers.times import ZONED, read_moments, refuse_years

SAMPLE = 1000
"""Values that tell formats apart that read the same texts alike."""


@dataclass
class TimeColumn:
    """The formats that the values seen so far allow. `formats`: those that read them all, None if there is no value;
    `zoneless`: a time states no offset; `numeric`: all are digits only; `misfit`: a value that no format reads, as a
    message shows it; `words`: texts that mean NULL, in addition to the usual ones; `sample`: the first texts."""

    formats: list[str] | None = None
    zoneless: bool = False
    numeric: bool = True
    misfit: str = ""
    words: tuple[str, ...] = ()
    sample: list[str] = field(default_factory=list)

    def look(self, cells: Cells, text_format: str | None) -> None:
        """Drops the formats that do not read these cells. `text_format`: the only one that is tried."""
        values = cells.values.drop_null()
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if not len(values):
            return
        if is_text(values.type) or pa.types.is_integer(values.type):
            self._look_at_texts(pc.utf8_trim_whitespace(values.cast(pa.string())), text_format)
        elif text_format in (None, ISO) and (pa.types.is_timestamp(values.type) or pa.types.is_date(values.type)):
            self.formats, self.numeric = [ISO], False
            self.zoneless = self.zoneless or getattr(values.type, "tz", None) is None
        else:
            self.formats, self.misfit = [], shown(values, 0)

    def _look_at_texts(self, texts: pa.Array, text_format: str | None) -> None:
        texts = texts.filter(pc.invert(pc.is_in(texts, value_set=pa.array(["", *USUAL, *self.words]))))
        if not len(texts) or self.formats == []:
            return
        tried = self.formats or ([text_format] if text_format else candidates(texts[0].as_py()))
        self.formats = [one for one in tried if read_all(texts, TimeFormat(one)) is not None]
        if not self.formats:
            self.misfit = _first_refused(texts, tried[0] if tried else ISO)
        self.sample += texts.slice(0, SAMPLE - len(self.sample)).to_pylist()
        self.numeric = self.numeric and bool(pc.all(pc.utf8_is_decimal(texts)).as_py())
        zoned = pc.all(pc.match_substring_regex(texts, ZONED)).as_py()
        self.zoneless = self.zoneless or not (zoned if ISO in self.formats else _states_offset(self.formats))


def time_columns(file: FileCells, names: Sequence[str], text_format: str | None = None) -> dict[str, TimeColumn]:
    """The named columns of a file; with `text_format`, no other format is tried. Raises SourceFileError."""
    columns = {name: TimeColumn(words=file.words) for name in names}
    for block in file.blocks(names):
        for name, parts in block.items():
            for cells in parts:
                columns[name].look(cells, text_format)
    for column in columns.values():
        if column.sample and column.formats:
            column.formats = without_alike(column.formats, column.sample)
    return columns


def _first_refused(texts: pa.Array, text_format: str) -> str:
    refusals = Refusals(texts)
    refuse_years(read_moments(texts, TimeFormat(text_format), refusals), refusals)
    return refusals.first[0].shown


def _states_offset(formats: Sequence[str]) -> bool:
    return all(TimeFormat(one).states_offset for one in formats)


def has_clock(text_format: str) -> bool:
    """Whether a format gives a time and not only a day."""
    directives = {match for match in DIRECTIVE.findall(text_format) if match != "%%"}
    return not directives or not directives <= DATE_DIRECTIVES.keys()
