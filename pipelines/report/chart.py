"""Draws a picture with Vega-Lite, by vl-convert: SVG for the page (wide and narrow), PNG for mail and slides.
Offline.

The page carries SVG and not Vega's JavaScript: it opens at once, prints, is a tenth of the size, and needs no
script to be read; hover labels come from each mark's description (see `templates/report.js`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import vl_convert

from trendlake.pipelines.report.inline_svg import inline_svg
from trendlake.pipelines.report.palette import LIGHT
from trendlake.pipelines.report.picture import Picture

FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
BAR_STEP = 30
VALUE_ROOM = 96
"""Pixels to the right of the longest bar, for its number."""

Spec = dict[str, Any]
"""A specification of Vega-Lite, or a part of one."""


@dataclass(frozen=True)
class Size:
    """Of the whole picture, axes included, in CSS pixels; `small` is a phone's."""

    width: int
    height: int
    small: bool = False


WIDE = Size(1016, 360)
NARROW = Size(354, 270, small=True)


def svg(picture: Picture, size: Size) -> str:
    """The picture as SVG markup whose colours are the page's CSS variables and whose size follows its
    container.
    """
    return inline_svg(vl_convert.vegalite_to_svg(json.dumps(_spec(_drawable(picture), size))))


def png(picture: Picture, title: str, subtitle: str) -> bytes:
    """The picture as PNG, twice as sharp, with the words that make it stand alone."""
    spec = _spec(_drawable(picture), WIDE, legend=True)
    spec["background"] = LIGHT["paper"]
    spec["padding"] = 28
    spec["title"] = {**_TITLE, "text": _in_xml(title), "subtitle": _in_xml(subtitle)}
    return bytes(vl_convert.vegalite_to_png(_plain_exponents(json.dumps(spec, ensure_ascii=False)), scale=2))


def _drawable(picture: Picture) -> Picture:
    """The picture with words that SVG can hold: at a sign that XML has not, vl-convert ends the whole process."""
    return replace(
        picture,
        message=_in_xml(picture.message),
        series=tuple(
            replace(
                series,
                label=_in_xml(series.label),
                marks=tuple(
                    replace(mark, label=_in_xml(mark.label), shown=_in_xml(mark.shown)) for mark in series.marks
                ),
            )
            for series in picture.series
        ),
    )


def _in_xml(words: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", words)


def _plain_exponents(words: str) -> str:
    """`10³⁴` as `10^34`: fonts that draw pictures often lack superscripts; a browser finds one that has."""
    return _SUPERSCRIPTS.sub(lambda digits: "^" + digits[0].translate(_DIGITS), words)


def _spec(picture: Picture, size: Size, *, legend: bool = False) -> Spec:
    """Written out, and not by Altair, which takes twice as long to make one as it takes to draw it."""
    spec = _chart(picture, size, legend)
    spec["config"] = _CONFIG
    spec["background"] = None
    spec["autosize"] = {"type": "fit", "contains": "padding"}
    spec["padding"] = 2
    return spec


def _chart(picture: Picture, size: Size, legend: bool) -> Spec:
    if picture.form == "nothing":
        return _nothing(picture.message, size)
    if picture.form == "bars":
        return _bars(picture, size)
    return _lines(picture, size, legend)


_CONFIG: Mapping[str, Any] = {
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelFont": FONT,
        "labelFontSize": 12,
        "labelColor": LIGHT["muted"],
        "labelPadding": 8,
        "domain": False,
        "ticks": False,
        "gridColor": LIGHT["line"],
        "title": None,
    },
    "legend": {
        "labelFont": FONT,
        "labelFontSize": 13,
        "labelColor": LIGHT["ink"],
        "title": None,
        "symbolType": "circle",
        "symbolSize": 90,
        "symbolStrokeWidth": 0,
        "rowPadding": 6,
        "columnPadding": 18,
        "offset": 14,
    },
}
_TITLE: Mapping[str, Any] = {
    "anchor": "start",
    "frame": "bounds",
    "offset": 20,
    "font": FONT,
    "fontSize": 20,
    "fontWeight": 600,
    "color": LIGHT["ink"],
    "limit": WIDE.width,
    "subtitleFont": FONT,
    "subtitleFontSize": 13,
    "subtitleColor": LIGHT["muted"],
    "subtitlePadding": 6,
    "subtitleLimit": WIDE.width,
}
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SUPERSCRIPTS = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_CLOCK = {"hours": "%H:%M", "minutes": "%H:%M", "seconds": "%H:%M:%S", "milliseconds": "%S.%L"}
_DAYS = dict.fromkeys(("year", "quarter", "month", "week", "date"), "%-d %b") | _CLOCK
_MONTHS = dict.fromkeys(("year", "quarter", "month"), "%b %Y") | {"week": "%-d %b", "date": "%-d %b"} | _CLOCK
MONTHS_FROM = timedelta(days=200)
_SHORT = "abs(datum.value) < 1e5 ? format(datum.value, ',~r') : replace(format(datum.value, '~s'), 'G', 'B')"


def _lines(picture: Picture, size: Size, legend: bool) -> Spec:
    marks = [
        {"at": _clock(mark.at), "value": mark.value, "series": str(i), "label": mark.label}
        for i, series in enumerate(picture.series)
        for mark in series.marks
    ]
    longest = max(len(series.marks) for series in picture.series)
    encoding = {
        "x": _field("at", "temporal", scale={"type": "utc"}, axis=_times(picture, size)),
        "y": _field("value", "quantitative", scale=_scale(picture), axis=_axis(picture, size)),
        "color": _colour(picture, legend),
    }
    points = {"type": "point", "filled": True, "opacity": 1, "invalid": "filter"}
    points["size"] = 34 if longest <= 40 else 12 if longest <= 80 else 6
    line = {
        "type": "line",
        "strokeWidth": 2,
        "strokeJoin": "round",
        "invalid": "break-paths-show-domains",
        "aria": False,
    }
    layers: list[Spec] = [
        {"mark": line, "encoding": encoding},
        {"mark": points, "encoding": {**encoding, "description": _field("label", "nominal")}},
    ]
    if picture.band is not None:
        span = [{"from": _clock(picture.band[0]), "to": _clock(picture.band[1])}]
        band = {"type": "rect", "color": LIGHT["band"], "opacity": 1, "aria": False}
        ends = {"x": _field("from", "temporal", scale={"type": "utc"}), "x2": {"field": "to"}}
        layers.insert(0, {"data": {"values": span}, "mark": band, "encoding": ends})
    return {"data": {"values": marks}, "layer": layers, "width": size.width, "height": size.height}


def _clock(moment: datetime) -> str:
    """The reading of the clock that the moment is shown on, for an axis in UTC."""
    return moment.replace(tzinfo=UTC).isoformat()


def _field(name: str, kind: str, **rest: Any) -> Spec:
    return {"field": name, "type": kind, **rest}


def _times(picture: Picture, size: Size) -> Spec:
    """The time axis; where windows are days and few, it names each day and never an hour."""
    most = 3 if size.small else 8
    starts = [mark.at for series in picture.series for mark in series.marks]
    span = max(starts) - min(starts)
    by_day = picture.daily and span.days <= most + 1
    mondays = {start for start in starts if start.weekday() == 0}
    if picture.weekly and span < MONTHS_FROM and len(mondays) > 1:
        # Vega's weeks begin on Sunday
        first, weeks = min(mondays), (max(mondays) - min(mondays)).days // 7
        step = timedelta(days=7 * max(1, -(-(weeks + 1) // most)))
        ticks = [first + n * step for n in range(most) if first + n * step <= max(mondays)]
        return {
            "grid": False,
            "labelFlush": True,
            "labelOverlap": "greedy",
            "labelSeparation": 20,
            "format": "%-d %b",
            "values": [_clock(tick) for tick in ticks],
        }
    return {
        "grid": False,
        "labelFlush": True,
        "labelOverlap": "greedy",
        "labelSeparation": 20,
        "format": _DAYS if span < MONTHS_FROM else _MONTHS,
        "tickCount": {"interval": "day", "step": 1} if by_day else most,
    }


def _bars(picture: Picture, size: Size) -> Spec:
    bars = [
        {"row": i, "value": mark.value, "series": str(i), "label": mark.label, "shown": mark.shown}
        for i, series in enumerate(picture.series)
        for mark in series.marks
    ]
    room = 96 if size.small else 180
    names = {
        "labelExpr": _named(picture, "value"),
        "labelLimit": room - 16,
        "minExtent": room,
        "labelColor": LIGHT["ink"],
    }
    encoding = {
        "y": _field("row", "ordinal", axis=names),
        "x": _field("value", "quantitative", scale=_scale(picture), axis=_axis(picture, size, horizontal=True)),
    }
    colours = _field("series", "nominal", legend=None, scale=_colours(picture, single=True))
    bar = {"type": "bar", "height": {"band": 0.62}, "cornerRadiusEnd": 2}
    value = {"type": "text", "align": "left", "dx": 6, "fontSize": 12, "color": LIGHT["ink"], "aria": False}
    layers = [
        {"mark": bar, "encoding": {**encoding, "color": colours, "description": _field("label", "nominal")}},
        {"mark": value, "encoding": {**encoding, "text": _field("shown", "nominal")}},
    ]
    return {"data": {"values": bars}, "layer": layers, "width": size.width, "height": BAR_STEP * len(bars) + 40}


def _nothing(message: str, size: Size) -> Spec:
    return {
        "data": {"values": [{"message": message}]},
        "mark": {"type": "text", "fontSize": 15, "color": LIGHT["muted"]},
        "encoding": {"text": _field("message", "nominal")},
        "width": size.width,
        "height": 120,
    }


def _scale(picture: Picture) -> Spec:
    bars, scale = picture.form == "bars", Spec()
    if picture.ticks:
        scale |= {"domain": [picture.ticks[0][0], picture.ticks[-1][0]], "nice": False, "zero": False}
    else:
        scale |= {"zero": picture.whole or bars, "nice": True}
    if bars:
        scale["range"] = [0, {"expr": f"width - {VALUE_ROOM}"}]
    return scale


def _axis(picture: Picture, size: Size, *, horizontal: bool = False) -> Spec:
    if not picture.ticks:
        return {
            "tickCount": 3 if horizontal and size.small else 5,
            "tickMinStep": 1 if picture.whole else 0,
            "labelExpr": _SHORT,
            "labelFlush": horizontal,
        }
    labels = json.dumps({str(int(value)): label for value, label in picture.ticks}, ensure_ascii=False)
    ticks = [value for value, _ in picture.ticks]
    return {"values": ticks, "labelExpr": f"{labels}[datum.value]", "labelFlush": horizontal}


def _colour(picture: Picture, legend: bool) -> Spec:
    """The series' colours. Only the PNG has a legend inside: the page's own wraps and can be selected."""
    shown: Spec | None = None
    if legend and len(picture.series) > 1:
        one_row = sum(len(series.label) + 6 for series in picture.series) < 130
        columns = len(picture.series) if one_row else 4
        shown = {"orient": "top", "columns": columns, "labelExpr": _named(picture, "label"), "labelLimit": 210}
    return _field("series", "nominal", legend=shown, scale=_colours(picture))


def _named(picture: Picture, datum: str) -> str:
    """An expression of Vega: the label of the series whose number is the `datum`."""
    return f"{json.dumps({str(i): series.label for i, series in enumerate(picture.series)})}[datum.{datum}]"


def _colours(picture: Picture, *, single: bool = False) -> Spec:
    roles = ["rest" if s.role == "rest" else "series1" if single else s.role for s in picture.series]
    return {"domain": [str(i) for i in range(len(roles))], "range": [LIGHT[role] for role in roles]}
