"""Secrets of connections, kept out of what leaves this process in words: run records, errors on a terminal, logs.

A setting or environment variable is a secret by its name, as Spark's own `spark.redaction.regex` has it. Its value is
remembered when the profile is read, and replaced wherever a message holds it: an exception of a storage client may
quote the address or the key it was given.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote

NAMES = re.compile(r"secret|password|passwd|token|(access|account|api|private)[._]?key|credential", re.IGNORECASE)
"""Spark's convention, and what storage of other houses calls the same."""
HIDDEN = "***"
SHORTEST = 4
"""Characters: replacing what is shorter would spoil messages and protect nothing."""
_ASSIGNED = re.compile(
    rf"(?i)([\w.-]*(?:{NAMES.pattern})[\w.-]*[\"']?\s*[=:]\s*[\"']?)(?!\s|\*\*\*)[^\s\"',;&)}}\]]+", re.IGNORECASE
)
_IN_ADDRESS = re.compile(r"(\w://)[^/\s@]*:[^/\s@]+@")
JAVA_PATTERN = (
    r"%replace{%d{HH:mm:ss} %p %c{1}: %m%n%ex}"
    r"{(?i)((?:secret|password|token|access.?key|account.?key)[^\\s=:]*\\s*[=:]\\s*)[^\\s,;]+}{$1***}"
)
"""How Java's logs are written: what is given to a secret's name is hidden there too. (Doubled: a properties file.)"""
_known: set[str] = set()


def is_secret(name: str) -> bool:
    """Whether the value of a setting or variable of this name is not to be shown."""
    return NAMES.search(name) is not None


def keep_secret(settings: Mapping[str, str]) -> None:
    """Remember the values of those settings that are secrets."""
    _known.update(_values(settings))


def redacted(text: str) -> str:
    """`text` without the secrets this process knows (of its profile and its environment), without passwords in
    addresses, and without what is given to a secret's name (`fs.s3a.secret.key=...`)."""
    for value in sorted(_known | set(_values(os.environ)), key=len, reverse=True):
        for written in (value, quote(value, safe="")):
            text = text.replace(written, HIDDEN)
    return _ASSIGNED.sub(rf"\1{HIDDEN}", _IN_ADDRESS.sub(rf"\1{HIDDEN}@", text))


def _values(settings: Mapping[str, str]) -> Iterator[str]:
    for name, value in settings.items():
        plain = value.strip()
        telling = len(plain) >= SHORTEST and plain.lower() not in ("true", "false", "none", "null")
        if is_secret(name) and telling and not os.path.exists(plain):  # a file's path is no secret
            yield plain
