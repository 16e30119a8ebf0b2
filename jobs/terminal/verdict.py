"""The outcome of commands that check something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Verdict:
    """The document of a command that checks something; unless it is `good`, the exit code is that of a user error,
    or of an internal error where it was one (`fault`)."""

    document: Any
    good: bool
    fault: bool = False
