"""Pages as a person sees them: a real headless Chromium, told what to open."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PHONE, DESK = 390, 1280


def needs_chromium() -> None:
    """Skips the test where there is none: `scripts/setup.sh --browser` brings it where it may."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on PATH")


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium without a window, for as long as it is needed."""
    needs_chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@dataclass
class Seen:
    """What a page did while it was open: complaints of the console, and what it asked for beside itself."""

    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@contextmanager
def opened(chromium: Browser, page: Path, width: int = DESK, scheme: str = "light") -> Iterator[tuple[Page, Seen]]:
    """The file as a page of `width` pixels."""
    shown = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    seen, address = Seen(), page.as_uri()
    shown.on("console", lambda said: seen.complaints.append(said.text) if said.type in ("error", "warning") else None)
    shown.on("pageerror", lambda error: seen.complaints.append(str(error)))
    shown.on("request", lambda asked: seen.asked.append(asked.url) if asked.url != address else None)
    shown.goto(address)
    try:
        yield shown, seen
    finally:
        shown.close()
