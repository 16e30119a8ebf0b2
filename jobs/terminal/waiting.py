"""The work of a command, shown on stderr while it prints nothing: a bar on a terminal, plain lines in a pipe or a log.

The work itself says what it is (`pipelines.progress`). Only a process of our own command shows it, not a program that
imports us, nor a command that is asked for JSON.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Any, TextIO

from trendlake.jobs.terminal import own_process
from trendlake.pipelines.progress import Count, Work, doing, going

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

QUIET = 2.0
"""Seconds without a line after which the work is shown."""
LOOK = 0.25
"""Seconds between two looks at it."""
AGAIN = 10.0
"""Seconds after which a plain line of the same work is printed again; twice as many each time, up to `MOST`."""
MOST = 300.0
INTERACTIVE = ("shell", "airflow")
"""Commands that wait for their user, whose own commands are shown."""


class _Watch(Thread):
    """Looks at the work that goes on, and shows it where nothing has been printed for a while."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(name="shows work", daemon=True)
        self.stream = stream
        self.bar: tuple[Progress, TaskID] | None = None
        self.lock = RLock()
        self.ended = Event()
        self.asking = 0
        self.printed_at = time.monotonic()
        self.shown, self.pause = "", QUIET

    def run(self) -> None:
        while not self.ended.wait(LOOK):
            works = () if self.asking else going()
            count = works[-1].count if works else None  # may ask Java: nobody waits for it
            with self.lock:
                if works and not self.ended.is_set():
                    self._show(works, count)
                else:
                    self.hide()

    def stop(self) -> None:
        self.ended.set()
        with self.lock:
            self.hide()
        self.join()

    def prints(self) -> None:
        """Called before a line is printed."""
        with self.lock:
            self.hide()
            self.printed_at, self.pause = time.monotonic(), QUIET

    def hide(self) -> None:
        if self.bar is not None:
            self.bar[0].stop()
            self.bar = None

    def _show(self, works: tuple[Work, ...], count: Count | None) -> None:
        now = time.monotonic()
        if self.bar is None and now - self.printed_at < QUIET:
            return
        words = "; ".join(work.what for work in works[1:] or works)
        since = f"{now - works[-1].began:.0f} s"
        if self.stream.isatty():
            self._draw(words, count, since)
        elif words != self.shown or now - self.printed_at >= self.pause:
            self.pause = AGAIN if words != self.shown else min(2 * self.pause, MOST)
            self.shown, self.printed_at = words, now
            with suppress(OSError, ValueError):  # whoever read it has gone
                print(", ".join(filter(None, [words, count and str(count), since])), file=self.stream, flush=True)

    def _draw(self, words: str, count: Count | None, since: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        if self.bar is None:
            columns = (TextColumn("{task.description}", markup=False), BarColumn(20), TextColumn("{task.fields[end]}"))
            console = Console(file=self.stream)
            shown = Progress(
                *columns,
                console=console,
                transient=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            shown.start()
            self.bar = shown, shown.add_task("", total=None, end="")
        progress, task = self.bar
        end = ", ".join(filter(None, [count and str(count), since]))
        width = max(10, progress.console.width - 24 - len(end))
        description = words if len(words) <= width else f"{words[: width - 3]}..."
        total = None if count is None else count.total
        progress.update(task, description=description, total=total, completed=count.done if count and total else 0)
        progress.update(task, end=end, refresh=True)


class _Noticed:
    """A stream that has the line of the work cleared before anything is written."""

    def __init__(self, stream: TextIO, watch: _Watch) -> None:
        self._stream, self._watch = stream, watch

    def write(self, text: str) -> int:
        self._watch.prints()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_WATCH: list[_Watch] = []


@contextmanager
def waiting(command: str, *, silent: bool) -> Iterator[None]:
    """Meanwhile work that takes long is shown, at least by the name of the `command`, the first of the work."""
    if silent:  # also a command that is typed into the shell
        with asking():
            yield
        return
    if not own_process.is_ours():
        yield
        return
    with ExitStack() as stack:
        if not _WATCH:
            stack.enter_context(_watched())
        if command not in INTERACTIVE:
            stack.enter_context(doing(command))
        yield


@contextmanager
def _watched() -> Iterator[None]:
    out, err = sys.stdout, sys.stderr
    watch = _Watch(err)
    sys.stdout, sys.stderr = _Noticed(out, watch), _Noticed(err, watch)
    _WATCH.append(watch)
    watch.start()
    try:
        yield
    finally:
        watch.stop()
        _WATCH.remove(watch)
        sys.stdout, sys.stderr = out, err


@contextmanager
def asking() -> Iterator[None]:
    """Meanwhile nothing is shown: the user is asked something, or wants JSON."""
    for watch in _WATCH:
        watch.asking += 1
        watch.prints()
    try:
        yield
    finally:
        for watch in _WATCH:
            watch.asking -= 1
            watch.prints()
