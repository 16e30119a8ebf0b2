"""Entries of a folder of patterns or contracts that are no patterns: of editors, of other programs, by mistake, and by
somebody who would like their name to be run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

MARK = "a_name_was_run"
"""The file, in the working directory, that a name makes where it is run."""
CODE = f"import pathlib; pathlib.Path('{MARK}').touch()"

Maker = Callable[[Path], object]


def text(content: str) -> Maker:
    return lambda path: path.write_text(content)


def link(target: str) -> Maker:
    return lambda path: path.symlink_to(target)


def sparse(path: Path) -> None:
    """A file of 100 GB, none of which is on the disk."""
    path.touch()
    os.truncate(path, 100 << 30)


def hidden(good: str) -> dict[str, Maker]:
    """Entries that editors make beside `good.yaml`, and others that are meant for programs: nobody speaks of them."""
    return {
        ".#good.yaml": link("user@host.4711:1700000000"),
        "#good.yaml#": text(good),
        ".good.yaml.swp": text("b0VIM 9.0"),
        ".good.yaml": text(good),
        ".yaml": text(good),
        "good.yaml~": text(good),
        "good.yaml.orig": text(good),
        "..2026_01_05": lambda path: path.mkdir(),
        "README.md": text("# patterns"),
    }


def odd(good: str) -> dict[str, Maker]:
    """Entries that look like a pattern or contract and are none: each is an error of its own, and stops no other."""
    return {
        "folder.yaml": lambda path: path.mkdir(),
        "nowhere.yaml": link("there/is/nothing.yaml"),
        "loop.yaml": link("loop.yaml"),
        "loop_a.yaml": link("loop_b.yaml"),
        "loop_b.yaml": link("loop_a.yaml"),
        "passwords.yaml": link("/etc/passwd"),
        "device.yaml": link("/dev/zero"),
        "pipe.yaml": os.mkfifo,
        f"{'n' * 250}.yaml": text(good),
        f"{'n' * 65}.yaml": text(good),
        "Upper.yaml": text(good),
        "with space.yaml": text(good),
        "with-dash.yaml": text(good),
        "1digit.yaml": text(good),
        "_under.yaml": text(good),
        "ünicode.yaml": text(good),
        "\udcff\udcfe.yaml": text(good),
        f'"""\n{CODE}\n""".yaml': text(good),
        f"'''\n{CODE}\n'''.yaml": text(good),
        f"')\n{CODE}\n#.yaml": text(good),
        f"{{__import__('os').system('touch {MARK}')}}.yaml": text(good),
        f"{{{{ cycler.__init__.__globals__.os.system('touch {MARK}') }}}}.yaml": text(good),
        f"$(touch {MARK}).yaml": text(good),
        f";touch {MARK}.yaml": text(good),
        "--help.yaml": text(good),
        "a'b.yaml": text(good),
        'a"b.yaml': text(good),
        "a\\b.yaml": text(good),
        "<img src=x onerror=alert(1)>.yaml": text(good),
        "[red]rich.yaml": text(good),
        "\x1b[31mred.yaml": text(good),
        "two\nlines.yaml": text(good),
        "back\u202ewards.yaml": text(good),
        "capital.YAML": text(good),
        "other.yml": text(good),
        "batch-b.yaml": text(good),
        "odd-entries.yaml": text(good),
        "sources-of-the-project.yaml": text(good),
        "seen.txt.yaml": text(good),
        "__init__.yaml": text(good),
    }


def unreadable() -> dict[str, Maker]:
    """Files with a good name and no good text."""
    return {
        "empty.yaml": text(""),
        "a_list.yaml": text("- a\n- b\n"),
        "binary.yaml": lambda path: path.write_bytes(bytes(range(256)) * 10),
        "latin.yaml": lambda path: path.write_bytes("name: café".encode("latin-1")),
        "huge.yaml": sparse,
        "quotes.yaml": text(f'"""\n{CODE}\n"""\n'),
        "encoded.yaml": text("# -*- coding: utf_7 -*-\n# " + f"+AAo-{CODE}+AAo-#\n"),
        "carriage.yaml": text(f"# a\r{CODE}\r# b\x0c{CODE}\u2028{CODE}\n"),
    }


def make(folder: Path, entries: dict[str, Maker]) -> None:
    for name, maker in entries.items():
        maker(folder / name)
