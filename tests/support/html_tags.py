"""The tags of HTML that a notebook shows."""

from __future__ import annotations

from html.parser import HTMLParser

OPEN_ENDED = {"br", "hr", "meta", "input"}
"""Tags that are never closed."""


class Tags(HTMLParser):
    """The tags and the attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page = page
        self.tags: list[str] = []
        self.unclosed: list[str] = []
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in OPEN_ENDED:
            self.unclosed.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def refuse_more_than_a_picture(self) -> None:
        """All tags are closed; no script, and nothing that is fetched."""
        assert self.tags
        assert not self.unclosed
        assert not {"script", "link", "img", "iframe", "object"} & set(self.tags)
        assert not [name for name in self.attributes if name.startswith("on") or name in ("href", "src")]
        assert "url(" not in self.page
