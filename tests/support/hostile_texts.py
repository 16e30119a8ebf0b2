"""Texts that a page must show and not obey: HTML, scripts, addresses, Markdown, templates, expressions of charts."""

from __future__ import annotations

ADDRESS = "http://127.0.0.1:9"
"""Nothing listens there: what a page asks of it is a request all the same."""
HOSTILE = (
    "<script>pwned()</script>",
    f"<img src={ADDRESS}/i onerror=pwned()>",
    "\"'><svg onload=pwned()>",
    f"' style='background:url({ADDRESS}/s)' x='",
    f"</title></style></script><iframe src={ADDRESS}/f></iframe>",
    f"[a link]({ADDRESS}/l) ![a picture]({ADDRESS}/p) <{ADDRESS}/a>",
    "| a | b |",
    "# heading `code` ``` *bold* _em_ ~~gone~~ 1. one",
    "{{ 7 * 7 }} {% raw %} ${HOME} $column $$ %(x)s",
    "&amp; &lt;b&gt; &#60;i&#62;",
    "javascript:pwned()",
    "'] + pwned() + ['",
    '"}, "href": "javascript:pwned()", {"x": "',
    "datum.value; pwned()",
    "a\u2028b\u202ec\u200bd",
    "\u0008\u001b[31mred \uffff\U0001f600",
)
