"""Which rows of each partition are in which windows."""

from __future__ import annotations

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int64s


@compiled.part
def _first(time: Int64s, first: int, last: int, bound: int) -> int:
    """The first position in [first, last) whose time is not below `bound`, else `last`: by strides that double."""
    step = 1
    while first < last and time[min(first + step, last) - 1] < bound:
        first = min(first + step, last)
        step *= 2
    last = min(first + step, last)
    while first < last:
        middle = (first + last) // 2
        if time[middle] < bound:
            first = middle + 1
        else:
            last = middle
    return first


@compiled.entry
def window_rows(
    time: Int64s, ends: Int64s, within: int, slide: int, origin: int, low: int, high: int, out: Int64s
) -> int:
    count = 0
    first = 0
    n = time.shape[0]
    while first < n:
        end = ends[first]
        lo = hi = first
        j = max(low, (time[first] - origin - within) // slide + 1)
        last = min(high, (time[end - 1] - origin) // slide)
        while j <= last:
            start = origin + j * slide
            lo = _first(time, lo, end, start)
            if lo == end:
                break
            if time[lo] >= start + within:
                j = (time[lo] - origin - within) // slide + 1
                continue
            hi = _first(time, max(hi, lo), end, start + within)
            if out.shape[0] > 0:
                out[count, 0], out[count, 1], out[count, 2] = lo, hi, j
            count += 1
            j += 1
        first = end
    return count


@compiled.entry
def calendar_rows(time: Int64s, ends: Int64s, begins: Int64s, stops: Int64s, first_window: int, out: Int64s) -> int:
    """The same of windows with boundaries of their own: window `first_window + k` is [begins[k], stops[k]). Both
    ascend. `begins` has one more: a window that begins with the next does not exist."""
    count = 0
    first = 0
    n, most = time.shape[0], stops.shape[0]
    while first < n:
        end = ends[first]
        lo = hi = first
        k = _first(stops, 0, most, time[first] + 1)
        while k < most and begins[k] <= time[end - 1]:
            lo = _first(time, lo, end, begins[k])
            if lo == end:
                break
            if time[lo] >= stops[k]:
                k = _first(stops, k, most, time[lo] + 1)
                continue
            if begins[k] < begins[k + 1]:
                hi = _first(time, max(hi, lo), end, stops[k])
                if out.shape[0] > 0:
                    out[count, 0], out[count, 1], out[count, 2] = lo, hi, first_window + k
                count += 1
            k += 1
        first = end
    return count
