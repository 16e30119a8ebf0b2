"""Values as the 64-bit words that `cep_core.kernels.vm` runs on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.events.arrays import numbers, valid
from trendlake.cep_core.events.normalise import distinct_reals
from trendlake.cep_core.events.zones import Clock
from trendlake.cep_core.expressions.bytecode import Instructions


class Words:
    """The first values of the machine's slots (`machine`), and those that each event puts there: `leaves` (n, L) int64
    and `leaf_null` (n, L) for `leaf_slots`. Strings are codes of one order over all that can come up; `texts` are those
    that neither constants nor leaves contain. `value` evaluates an expression for all events."""

    def __init__(
        self, instructions: Instructions, value: Callable[[Any], pa.Array], length: int, texts: Iterable[str] = ()
    ) -> None:
        families = [family for _, family, _ in instructions.leaves]
        arrays = distinct_reals([value(node) for node, _, _ in instructions.leaves], "a condition between events")
        columns = list(zip(arrays, families, strict=True))
        known = [*texts, *(value for value, family in instructions.constants.values() if family == "string")]
        for array, family in columns:
            if family == "string":
                known += pc.unique(array).to_pylist()
        self.strings = _closed({text for text in known if text is not None}, instructions.cases)
        self.codes = {text: code for code, text in enumerate(self.strings)}
        memory = np.zeros(max(1, instructions.slots), np.int64)
        null = np.zeros(len(memory), np.bool_)
        for slot, (constant, family) in instructions.constants.items():
            memory[slot], null[slot] = self.word(constant, family), constant is None
        cases = machine_table(
            self.strings, self.codes, cases=instructions.cases, texts=instructions.texts, zone=instructions.zone
        )
        self.machine = (memory, memory.view(np.float64), null, cases)
        self.leaf_slots = np.array([slot for _, _, slot in instructions.leaves], np.int64)
        self.leaves = np.zeros((length, len(columns)), np.int64)
        self.leaf_null = np.zeros((length, len(columns)), np.bool_)
        for x, (array, family) in enumerate(columns):
            self.leaves[:, x], self.leaf_null[:, x] = self._words(array, family)

    def word(self, value: Any, family: str) -> int:
        """A value as the machine's 64 bits."""
        if value is None:
            return 0
        if family == "string":
            return self.codes[value]
        if family == "double":
            return int(np.array([float(value) + 0.0]).view(np.int64)[0])
        return int(value)

    def _words(self, array: pa.Array, family: str) -> tuple[Int64s, Bools]:
        null = ~valid(array)
        if pa.types.is_null(array.type):
            return np.zeros(len(array), np.int64), null
        if family == "string":
            encoded = array.dictionary_encode()
            known = np.array([self.codes[text] for text in encoded.dictionary.to_pylist()] or [0], np.int64)
            return known[numbers(encoded.indices, 0)] * ~null, null
        if family == "double":
            reals = numbers(array.cast(pa.float64(), safe=False), 0.0) + 0.0
            return reals.view(np.int64), null
        filled = array.cast(pa.int64()) if not pa.types.is_int64(array.type) else array
        return numbers(filled, 0), null


def machine_table(
    strings: Sequence[str], codes: Mapping[str, int], *, cases: bool, texts: bool, zone: str | None
) -> Int64s:
    """The machine's knowledge of strings, by their codes: the codes in lower (row 0) and upper case (row 1), if
    `cases`; where the UTF-8 of each begins (row 2) in all of it, eight bytes a number (row 3), if `texts`. And, if
    `zone`, its `Clock`: the moments (row 4) and offsets (row 5)."""
    table = _text_table(strings, codes, cases=cases, texts=texts)
    if zone is None:
        return table
    clock = Clock.of(zone)
    rows = np.zeros((6, max(table.shape[1], len(clock.moments))), np.int64)
    rows[: len(table), : table.shape[1]] = table
    rows[4] = np.iinfo(np.int64).max
    rows[4, : len(clock.moments)], rows[5, : len(clock.moments)] = clock.moments, clock.offsets
    return rows


def _text_table(strings: Sequence[str], codes: Mapping[str, int], *, cases: bool, texts: bool) -> Int64s:
    if not strings or not (cases or texts):
        return np.zeros((2, 0), np.int64)
    encoded = [text.encode() for text in strings] if texts else []
    ends = np.cumsum([0, *map(len, encoded)])
    packed = np.frombuffer(b"".join(encoded).ljust(-(-int(ends[-1]) // 8) * 8, b"\0"), np.int64)
    table = np.zeros((4 if texts else 2, max(len(strings), len(ends), len(packed))), np.int64)
    if cases:
        array = pa.array(strings)
        for row, change in enumerate((pc.utf8_lower, pc.utf8_upper)):
            table[row, : len(strings)] = [codes[text] for text in change(array).to_pylist()]
    if texts:
        table[2, : len(ends)], table[3, : len(packed)] = ends, packed
    return table


def _closed(texts: set[str], cases: bool) -> list[str]:
    """The texts in order; with all that lower and upper make of them, if `cases`."""
    while cases:
        array = pa.array(sorted(texts), pa.string())
        more = {*pc.utf8_lower(array).to_pylist(), *pc.utf8_upper(array).to_pylist()} - texts
        if not more:
            break
        texts = texts | more
    return sorted(texts)
