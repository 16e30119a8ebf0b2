"""The arguments of the kernels of kind algebra: named tuples of arrays.

A kernel takes them apart before its loop: with fields read inside of it, the loop over candidates took 13 to 67 %
longer (measured). Positions are places in the right stream, sorted by group and end; rows are places in a stream.
"""

from __future__ import annotations

from typing import NamedTuple

from trendlake.cep_core.events.array_types import Bools, Float64s, Int64s

LOW, HIGH, SLOT = range(3)
"""Columns of `Programs.ranges`: code[LOW:HIGH], its value in SLOT (-1: no program)."""
SAFE, SAFE_GO, VALUES = 0, 2, 4
"""Rows of `Programs.ranges`: the safe part of the first condition, and the risky one; the same of what FOLD goes on by;
then those that compute values."""
WHOLE, FIRST, SECOND, SO_FAR = range(4)
"""Of `Programs.spans`: the slots of durations, -1 where no program reads them."""
POSITION, END, LINK = range(3)
"""Columns of `Queue.places`: the last event of an instance (-1: it has the first only), its end, the next in the hash
table."""
NEXT_ROW, USED, AT_PROGRAM = range(3)
"""Of `state`: the row to begin with, rows of output, and, where whole numbers leave 64 bits, the program."""


class Machine(NamedTuple):
    """The program that `cep_core.kernels.vm.execute` runs."""

    code: Int64s
    values: Int64s
    reals: Float64s
    null: Bools
    cases: Int64s


class Programs(NamedTuple):
    """`ranges` (programs, 3), and the slots of durations."""

    ranges: Int64s
    spans: Int64s


class Leaves(NamedTuple):
    """Attributes of a stream: `words` and `null` (rows, leaves) go to `slots` of the machine."""

    slots: Int64s
    words: Int64s
    null: Bools


class Left(NamedTuple):
    """The left stream: the rows to look at, in order; by row the group where it looks (-1: nowhere), start, end."""

    order: Int64s
    groups: Int64s
    start: Int64s
    end: Int64s


class Right(NamedTuple):
    """The right stream by position: rows, ends, starts; and where each group, of events that equality keys let meet,
    begins."""

    rows: Int64s
    ends: Int64s
    starts: Int64s
    bounds: Int64s


class Last(NamedTuple):
    """By position: the group of an event of the right stream, and the group where an instance looks whose last event it
    is."""

    own: Int64s
    now: Int64s


class Limits(NamedTuple):
    """Microseconds: durations are below `within` and in [low, high]. Whether events of the right stream are points, and
    whether some have one end."""

    within: int
    low: int
    high: int
    points: bool
    ties: bool


class Tree(NamedTuple):
    """A tree of maxima (`pairs.tree_of`) over keys of the right stream, and what each left row needs of them; empty
    where no key is compared."""

    nodes: Int64s
    least: Int64s


class FoldLeaves(NamedTuple):
    """Of the first event; of `$`, while the instance has that event only (by left row), and later (by right row); of
    the next event; of computed values, which begin as these words."""

    firsts: Leaves
    begins: Leaves
    goes_on: Leaves
    seconds: Leaves
    values: Leaves


class Steps(NamedTuple):
    """Comparisons of an instance with the next event, as keys that must be as much as is needed (`strict`: more), and
    whether any is NULL: by position, of the next event; by left row, of an instance that has its first event only; by
    position, of one whose last event it is."""

    keys: Int64s
    missing: Bools
    first: Int64s
    first_missing: Bools
    now: Int64s
    now_missing: Bools
    strict: Bools


class Queue(NamedTuple):
    """Instances of one first event: `places` (n, 3), `values` (n, values + 1), the last a mask of NULLs; and, for ties,
    a hash table of them: `heads`, good where `stamps` is that of the first event."""

    places: Int64s
    values: Int64s
    heads: Int64s
    stamps: Int64s


class Instances(NamedTuple):
    """The instances that FOLD finds: (row of the left stream, row of the right one), and the computed values as in
    `Queue`."""

    rows: Int64s
    values: Int64s
