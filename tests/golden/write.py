"""Writes the digests of the golden corpus: `python -m tests.golden.write`, after an engine version was raised.

It refuses to write other results under the same version: rows that an older engine published would go unnoticed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from tests.golden.corpus import DIGESTS, KINDS, digests, total
from trendlake.cep_core.kinds import KINDS as BUILT


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The cases of both whose rows differ."""
    return [name for name, digest in now.items() if before.get(name, digest) != digest]


def main() -> int:
    """Exit status 1 where results changed and the version did not."""
    stored: dict[str, Any] = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
    failed = False
    for kind in KINDS:
        before = stored.get(kind, {"version": 0, "cases": {}})
        now = digests(kind)
        names = changed(before["cases"], now)
        version = BUILT[kind].version
        if names and version <= before["version"]:
            print(f"{kind}: {len(names)} cases changed under version {version}, for example {names[0]!r}: raise it")
            failed = True
            continue
        stored[kind] = {"version": version, "digest": total(now), "cases": now}
        print(f"{kind}: version {version}, {len(now)} cases, {len(names)} changed, digest {total(now)}")
    DIGESTS.write_text(json.dumps(stored, indent=0, ensure_ascii=False) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
