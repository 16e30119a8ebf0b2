"""Patterns over the source of `tests/support/signals.py`, for histories and kills: one or more of every kind."""

from __future__ import annotations

HEAD = "name: watched\nsource: signals\n"
PATTERNS = {
    "plain": """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: A a+
where: ["[place]", "a.price < NEXT(a).price"]
return: {trends: COUNT(*), most: MAX(a.price), total: SUM(a.price)}
group_by: [place]
within: 8 hours
slide: 4 hours
""",
    "rows that hold": """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: A a+
where: ["[place]", "a.price < NEXT(a).price"]
return: {trends: COUNT(*), most: MAX(a.price)}
having: ["trends > 1", "most > 2 OR place = 'n'"]
group_by: [place]
within: 8 hours
slide: 4 hours
""",
    "derived groups": """\
kind: trends
origin: 2026-01-01T00:00:00Z
derive: {part: "hour(event_time) / 6 < 2", twice: price * 2, unread: lower(remark)}
pattern: A a+
where: ["[place, part]", "a.twice < NEXT(a).twice", "a.twice > 2"]
return: {trends: COUNT(*), most: MAX(a.twice)}
group_by: [part, place]
within: 8 hours
slide: 4 hours
""",
    "matches that hold": """\
kind: matches
pattern: SEQ(A a, B b+)
where: ["[place]"]
return: {total: SUM(b.price), n: COUNT(b)}
having: ["n > 1", "end - start < 3 hours"]
within: 5 hours
""",
    # Longer than within: rows of a pane depend on events far behind it.
    "any event": """\
kind: matches
pattern: SEQ(A a, ANY b)
where: ["[place]"]
return: {lasted: b.event_time - a.event_time}
within: 3 hours
""",
    "an absence with a limit": """\
kind: matches
pattern: SEQ(A a, B b, NOT C c within 7 hours)
where: ["[place]"]
within: 3 hours
""",
    # Of trends: their lengths, how long they last, one of the longest; of occurrences: those that are chosen.
    "lengths": """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: (A a OR B b)+
where: ["[place]", "a.price <= NEXT(a).price"]
return:
  trends: COUNT(*)
  most: MAX(LENGTH(*))
  mean: AVG(LENGTH(a))
  total: SUM(LENGTH(*))
  lasts: AVG(DURATION(*))
  sum: SUM(DURATION(*))
  three: COUNT(*) FILTER (WHERE LENGTH(*) >= 3)
  high: AVG(a.price) FILTER (WHERE a.price > 3)
  events: LONGEST(*)
  first: FIRST(a.remark)
  dearest: MAX_BY(a.event_id, a.price)
group_by: [place]
within: 8 hours
slide: 4 hours
""",
    # A changed event joins runs or cuts them.
    "maximal runs": """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: A a+
where: ["[place]", "a.price <= NEXT(a).price"]
select: partition_contiguous
output: maximal
return: {runs: COUNT(*), longest: MAX(LENGTH(*)), mean: AVG(LENGTH(*)), lasts: MAX(DURATION(*)), events: COUNT(a)}
group_by: [place]
within: 12 hours
""",
    # The events of the NOT need not agree on anything: each touches every group of its windows.
    "a NOT for all": """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: SEQ(A a+, NOT C c, B b)
where: ["[a.place, b.place]"]
return: {trends: COUNT(*), first: MIN(a.price)}
group_by: [place]
within: 12 hours
""",
    "a NOT of its own place": """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: SEQ(NOT C c, A a+)
where: ["[place]", "c.price > 3"]
return: {trends: COUNT(*), mean: AVG(a.price)}
group_by: [place]
within: 6 hours
""",
    "matches": """\
kind: matches
pattern: SEQ(A a, B b+)
where: ["[place]", "b.price >= a.price"]
return: {total: SUM(b.price)}
within: 5 hours
""",
    # Parts that may be absent: what an event was to a match may change with another event.
    "operators of matches": """\
kind: matches
pattern: SEQ(A a?, NOT C c, B b{1,3}, (C d OR A e))
where: ["[place]", "b.price >= a.price"]
return: {often: COUNT(b), gain: e.price - a.price}
within: 5 hours
""",
    "a NOT that may be the last": """\
kind: matches
pattern: SEQ((A a OR B b)+, NOT C c, A d?)
where: ["[place]", "b.price >= a.price"]
select: skip_till_any_match
return: {often: COUNT(a)}
within: 3 hours
""",
    # Its last arc waits for time to come: what no event touches may change too.
    "automaton": """\
kind: automaton
register: {n: {type: int, init: 0}}
start: p
final: [q, r]
arcs:
  - {from: p, to: q, when: "e.event_type = 'A'", set: {n: n + 1}}
  - {from: q, to: q, when: "e.price > 2", set: {n: n + 1}}
  - {from: q, to: r, at: window_end, when: "n > 1"}
partition_by: [place]
within: 5 hours
""",
    "automaton without overlap": """\
kind: automaton
register: {n: {type: int, init: 0}}
start: p
final: [q]
arcs:
  - {from: p, to: q, when: "e.event_type = 'A'", set: {n: n + 1}}
  - {from: q, to: q, when: "e.price > 2", set: {n: n + 1}}
partition_by: [place]
output: non_overlap
having: ["n > 1"]
within: 5 hours
""",
    # What is asked changes on the second day, and one arc lives for some hours only.
    "arcs that come and go": """\
kind: automaton
register: {n: {type: int, init: 0}}
start: p
final: [q, r]
arcs:
  - {from: p, to: q, when: "e.event_type = 'A'", set: {n: n + 1}, valid_to: 2026-01-02T00:00:00Z}
  - {from: p, to: q, when: "e.event_type = 'B'", set: {n: n + 2}, valid_from: 2026-01-02T00:00:00Z}
  - {from: q, to: q, when: "e.price > 2", set: {n: n + 1}}
  - {from: q, to: r, when: "e.price > 4", valid_from: 2026-01-01T15:00:00Z, valid_to: 2026-01-02T09:00:00Z}
partition_by: [place]
within: 5 hours
""",
    # Branches: of simultaneous events each that goes on makes an instance.
    "algebra": """\
kind: algebra
partition_by: [place]
pattern: |
  SELECT event_id_1 AS first, price, n, total
  FROM (SELECT *, 1 AS n, price AS total FROM FILTER{event_type = 'A'}(EVENTS))
    FOLD{$2.event_type != 'C', $2.price >= $.price, $.n + 1 AS n, $.total + $2.price AS total} EVENTS
within: 5 hours
""",
    # The later document of a row may be up to 9 hours after the one that changes.
    "documents": """\
kind: xml_join
queries:
  followed:
    left: {a: /item, k: $a/key}
    right: {b: /item, l: $b/key}
    operator: followed_by
    where: [$k = $l]
    within: 9 hours
    return: {value: $l, node: node($a)}
  both:
    left: {a: "/item[note > 0]", k: $a/key, n: $a/note}
    right: {b: /item, l: $b//key}
    operator: join
    where: [normalize-space($k) = normalize-space($l)]
    within: 3 hours
    return: {note: $n}
""",
    # Extrema as instants, and the next one: a row depends on the events of twice `within`.
    "instants of doubles": """\
kind: algebra
partition_by: [level]
pattern: |
  SELECT event_id, price, rate, day FROM A UNION B PUBLISH rises
  SELECT MAX(price) AS p, COUNT(*) AS n, SUM(rate) AS r, MIN(day) AS day
  FROM rises NEXT{$2.price > $1.price} (SELECT event_id, price FROM EVENTS) PUBLISH tops
  SELECT p_1 AS from_p, p AS to_p, n, r, day, DUR AS length FROM tops NEXT{$2.p != $1.p} tops
within: 12 hours
""",
    # A row may be of the first document and the last.
    "documents of all history": """\
kind: xml_join
left: {a: /item, k: $a/key, n: $a/note, g: $n/@lang}
right: {b: /item, l: $b/key, m: $b/note, h: $m/@lang}
operator: join
where: [$k = $l, $n = $m, $g = $h]
within: unbounded
""",
    # Each match depends on those before it: a run reads all history.
    "matches without overlap": """\
kind: matches
pattern: SEQ(A a, B b)
where: ["[place]"]
output: non_overlap
return: {total: SUM(b.price)}
within: 5 hours
""",
    # Each match begins behind the one before: a change may move all later ones of its place.
    "row patterns": """\
kind: match_recognize
pattern: |
  FROM signals MATCH_RECOGNIZE (
    PARTITION BY place ORDER BY event_time
    MEASURES FIRST(down.price) AS top, LAST(up.price) AS back, COUNT(*) AS n
    PATTERN (down+ up{1,3}?)
    DEFINE down AS price <= PREV(price), up AS price > PREV(price))
""",
    "row patterns within hours": """\
kind: match_recognize
pattern: |
  FROM signals MATCH_RECOGNIZE (
    PARTITION BY place ORDER BY event_time
    MEASURES SUM(a.price) AS total, CLASSIFIER() AS label
    ALL ROWS PER MATCH
    PATTERN (a b* c?)
    DEFINE a AS event_type = 'A', b AS b.price >= a.price, c AS event_type = 'C')
within: 5 hours
""",
    # Without a chain: only hours around a change are read.
    "row patterns from each row": """\
kind: match_recognize
pattern: |
  SELECT n, total FROM signals MATCH_RECOGNIZE (
    PARTITION BY place ORDER BY event_time
    MEASURES COUNT(*) AS n, SUM(price) AS total
    AFTER MATCH SKIP TO NEXT ROW
    PATTERN (a b+)
    DEFINE a AS event_type = 'A', b AS SUM(price) < 15)
  WHERE n > 2
within: 7 hours
""",
    "row patterns from each row of all": """\
kind: match_recognize
pattern: |
  FROM signals MATCH_RECOGNIZE (
    PARTITION BY level, remark ORDER BY event_time
    MEASURES MATCH_NUMBER() AS m, CLASSIFIER() AS label, COUNT(b.*) AS between
    ALL ROWS PER MATCH WITH UNMATCHED ROWS
    AFTER MATCH SKIP TO NEXT ROW
    PATTERN (a b*? c)
    DEFINE a AS price > 2, c AS price < 2)
""",
    "row patterns at the edges": """\
kind: match_recognize
pattern: |
  FROM signals MATCH_RECOGNIZE (
    PARTITION BY place ORDER BY event_time
    MEASURES COUNT(c.*) AS n, NEXT(LAST(event_id)) AS behind
    PATTERN (^ a+ | b c+ $ | d e)
    DEFINE a AS event_type = 'A', b AS event_type = 'B', d AS NEXT(price) > 5, e AS event_type != PREV(event_type))
""",
    "row patterns onward to a variable": """\
kind: match_recognize
pattern: |
  FROM signals MATCH_RECOGNIZE (
    PARTITION BY place ORDER BY event_time
    MEASURES MATCH_NUMBER() AS m, FIRST(u.price) AS u, LAST(any1.price) AS p
    AFTER MATCH SKIP TO FIRST last1
    PATTERN (any1 (x | u)+? last1)
    DEFINE x AS price <= PREV(price), u AS price > 3, last1 AS event_type = 'A' OR MATCH_NUMBER() > 3)
within: 9 hours
""",
    # Matches overlap, and rows of all places are one partition.
    "row patterns that overlap": """\
kind: match_recognize
pattern: |
  FROM signals MATCH_RECOGNIZE (
    ORDER BY event_time
    MEASURES COUNT(*) AS n, PREV(a.price, 2) AS before, RUNNING SUM(price) AS total
    ALL ROWS PER MATCH
    AFTER MATCH SKIP TO LAST c
    PATTERN (a b{0,3} c d?)
    DEFINE a AS event_type = 'A', b AS price >= a.price, c AS price < PREV(price), d AS NEXT(price) > 3)
having: ["total > 1"]
within: 3 hours
""",
    # The latest first, with empty matches: every new event is before all others.
    "row patterns backwards": """\
kind: match_recognize
pattern: |
  FROM (SELECT *, price * 2 AS twice FROM signals WHERE event_type != 'C') MATCH_RECOGNIZE (
    PARTITION BY place ORDER BY event_time DESC, price
    MEASURES SUM(twice) AS total, COUNT(*) AS n
    ALL ROWS PER MATCH
    PATTERN (a*)
    DEFINE a AS twice >= PREV(twice))
""",
    "row patterns for each": """\
kind: match_recognize
for_each: {least: [1, 4]}
pattern: |
  FROM signals MATCH_RECOGNIZE (
    PARTITION BY place ORDER BY event_time
    MEASURES COUNT(*) AS n, MAX(price) AS most
    PATTERN (a b*)
    DEFINE a AS price >= $least, b AS price > PREV(price))
within: 12 hours
""",
    # Columns of doubles, floats, decimals and dates as groups and partitions: a NaN is a NULL, -0.0 is 0.0.
    "doubles as groups": """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: A a+
where: ["[level]"]
return: {trends: COUNT(*), total: SUM(a.price)}
group_by: [level]
within: 8 hours
""",
    "floats, dates and texts as groups": """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: SEQ(A a, NOT C c, B b)
where: ["[rate, day]"]
return: {trends: COUNT(*), least: MIN(b.price)}
group_by: [rate, day, remark]
within: 12 hours
""",
    "decimals as groups": """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: A a+
where: ["[account]"]
return: {trends: COUNT(*), most: MAX(a.price)}
group_by: [account]
within: 6 hours
""",
    "doubles as partitions": """\
kind: automaton
register: {n: {type: int, init: 0}}
start: p
final: [q]
arcs:
  - {from: p, to: q, when: "e.event_type = 'A'", set: {n: n + 1}}
  - {from: q, to: q, when: "e.price > 2", set: {n: n + 1}}
partition_by: [level, account]
within: 5 hours
""",
    # The measure has a partition's name and is none.
    "matches of doubles": """\
kind: matches
pattern: SEQ(A a, B b+)
where: ["[level, rate]"]
return: {level: SUM(b.price), total: SUM(b.price)}
within: 5 hours
""",
}
KINDS = ("plain", "algebra", "documents", "row patterns")
"""One of each sort of work in a worker: kernels by partition, operators over a partition, documents in one shard, and a
partition of all time."""
ALWAYS = ("plain", "maximal runs", "automaton", "documents of all history", "row patterns within hours")
REPEATS = ("lengths", "a NOT that may be the last")
"""`make test` tries those that are `ALWAYS` tried, with `EXAMPLES=all` also these; `make chaos` tries all."""
EDITS = {
    "another condition": ("plain", "a.price < NEXT", "a.price <= NEXT"),
    "another row": ("rows that hold", "trends > 1", "trends > 2"),
    "another column": ("plain", "return: {", "return: {least: MIN(a.price), "),
    "another step": ("algebra", "$2.price >= $.price", "$2.price > $.price"),
    "another query": ("documents", "[$k = $l]", "[normalize-space($k) = normalize-space($l)]"),
    "a shorter key": ("plain", "group_by: [place]", "group_by: []"),
    "a longer key": ("plain", "group_by: [place]", "group_by: [place, remark]"),
    "a group that is NULL": ("plain", "group_by: [place]", "group_by: [day]"),
    "no attribute": ("algebra", ", n, total", ", total"),
    "no partition": ("doubles as partitions", "[level, account]", "[account]"),
    "another quantifier": ("row patterns", "up{1,3}?", "up{1,3}"),
    "a row for each row": ("row patterns", "PATTERN (down+", "ALL ROWS PER MATCH PATTERN (down+"),
    "another lifetime": ("arcs that come and go", "2026-01-02T09:00:00Z", "2026-01-02T18:00:00Z"),
}
"""What an analyst changes: in which pattern, what, into what."""
TREND = """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: A a+
where: [{where}]
return: {{trends: COUNT(*), total: SUM(a.price)}}
group_by: [{groups}]
within: {within}
"""
RISES = """\
kind: algebra
partition_by: [{partition}]
pattern: |
  SELECT {attributes} FROM A NEXT{{$2.price >= $1.price}} A
within: 6 hours
"""
RUNS = """\
kind: automaton
register: {{n: {{type: int, init: 0}}}}
start: p
final: [q]
arcs:
  - {{from: p, to: q, when: "e.event_type = 'A'", set: {{n: n + 1}}}}
partition_by: [{partition}]
within: 6 hours
"""
STREAKS = """\
kind: match_recognize
pattern: |
  FROM signals MATCH_RECOGNIZE (
    {partition} ORDER BY event_time MEASURES COUNT(*) AS n {rows} PATTERN (a+) DEFINE a AS event_type = 'A')
"""
DOCUMENTS = """\
kind: xml_join
queries:
  same:
    left: {{a: /item, k: $a/key}}
    right: {{b: /item, l: $b/key}}
    operator: followed_by
    where: [$k = $l]
    within: 6 hours
    return: {{{returned}}}
"""


def _trend(groups: str, where: str = "", within: str = "6 hours") -> str:
    return TREND.format(where=where, groups=groups, within=within)


KEYS = {
    "one group": _trend(""),
    "two groups": _trend("place"),
    "two groups of other sums": _trend("place", '"a.price > 1"'),
    "two columns of groups": _trend("place, price"),
    "groups that are NULL": _trend("remark"),
    "a family": _trend("", "a.price >= $least") + "for_each: {least: [0, 1, 2]}\n",
    "a family of two columns": _trend("", '"a.price >= $least", "a.price <= $most"')
    + "for_each: {least: [0, 1], most: [3, 4]}\n",
    "hours": _trend("place", within="1 hour"),
    "days": _trend("place", within="1 day"),
    "rises": RISES.format(partition="", attributes="price_1 AS least, price AS most"),
    "rises without an attribute": RISES.format(partition="", attributes="price_1 AS least"),
    "rises by place": RISES.format(partition="place", attributes="price_1 AS least"),
    "runs": RUNS.format(partition=""),
    "runs by place": RUNS.format(partition="place"),
    "matches": """\
kind: matches
pattern: SEQ(A a, B b+)
where: ["[place]"]
return: {summed: SUM(b.price)}
within: 6 hours
""",
    "graphs of matches": """\
kind: matches
pattern: SEQ(A a, B b+)
where: ["[place]"]
output: compressed
within: 6 hours
""",
    "streaks": STREAKS.format(partition="", rows="ONE ROW PER MATCH"),
    "streaks by place": STREAKS.format(partition="PARTITION BY place", rows="ONE ROW PER MATCH"),
    "rows of streaks": STREAKS.format(partition="", rows="ALL ROWS PER MATCH"),
    "short streaks": STREAKS.format(partition="", rows="ONE ROW PER MATCH") + "within: 6 hours\n",
    "two queries of documents": DOCUMENTS.format(returned="value: $l")
    + """\
  noted:
    left: {a: /item, k: $a/key, n: $a/note}
    right: {b: /item, l: $b/key}
    operator: join
    where: [$k = $l]
    within: 3 hours
    return: {note: $n}
""",
    "one query of documents": DOCUMENTS.format(returned=""),
    "each of some keys": """\
kind: xml_join
each: [{key: k0}, {key: k1}, {key: k2}]
queries:
  of_{key}:
    left: {a: "/item[key = '{key}']", k: $a/key}
    right: {b: /item, l: $b/key}
    operator: followed_by
    where: [$k = $l]
    within: 6 hours
    return: {value: $l}
""",
}
"""Patterns of every kind whose results have other keys, or say by another column which window a row is of."""
