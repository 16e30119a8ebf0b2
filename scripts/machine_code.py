"""Compiles kernels for a wheel: `python -m scripts.machine_code`, then `python -m build --wheel`.

Asked are the worked cases of each kind and of calendars, and every tenth query of the golden corpus. The code is for a
processor of the level that `kernel_cache.PROCESSOR` names, and its rows are those of code for this machine's processor:
the golden digests.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.cep_core.xml_join.test_worked_cases import cases
from tests.golden.corpus import DIGESTS, KINDS, Entry, answer, entries
from tests.support.cases import load
from tests.support.engines import kernels
from tests.support.xml_documents import engine, in_micros
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.kernel_cache import FEATURES, MADE_WITH, PROCESSOR, SHIPPED, KernelCache, made_with

EVERY = 10
"""One of so many drawn queries is asked."""


def main(arguments: list[str]) -> int:
    """Fills the folder that is named, else the one in the package. The exit status."""
    folder = Path(arguments[0]).resolve() if arguments else SHIPPED
    with tempfile.TemporaryDirectory() as empty:
        settings = {
            "NUMBA_CPU_NAME": PROCESSOR,
            "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in FEATURES),
            "TRENDLAKE_CACHE": empty,
        }
        command = [sys.executable, "-m", "scripts.machine_code", "--compile", str(folder), *arguments[1:]]
        return subprocess.run(command, env=os.environ | settings, check=False).returncode


def compiled(folder: Path, kinds: list[str]) -> int:
    """As `main`, in a process whose compiler has been told the processor."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    KernelCache.made_in = folder
    golden, wrong = json.loads(DIGESTS.read_text()), list[str]()
    for kind in (kind for kind in KINDS if not kinds or kind in kinds):
        for entry in asked(kind):
            digest = hashlib.sha256(answer(entry).encode()).hexdigest()[:12]
            if digest != golden[kind]["cases"][entry.name]:
                wrong.append(f"{kind}: {entry.name}")
    for case in (case for case in cases() if "documents" in case and (not kinds or "xml_join" in kinds)):
        with suppress(TrendlakeError):  # of a case that is one
            engine(case["query"], in_micros(case["documents"]))
    for dated in load("calendar_and_length.yaml") if not kinds or "trends" in kinds else ():
        with suppress(TrendlakeError):
            kernels(dated.query, dated.events)
    if wrong:
        print(f"other rows than in the golden corpus: {', '.join(wrong)}", file=sys.stderr)
        return 1
    (folder / MADE_WITH).write_text(json.dumps(made_with()) + "\n")
    files = list(folder.glob("*.z"))
    print(f"{folder}: {len(files)} kernels, {sum(file.stat().st_size for file in files) / 2**20:.1f} MB")
    return 0


def asked(kind: str) -> Iterator[Entry]:
    drawn = 0
    for entry in entries(kind):
        of_corpus = entry.name.startswith("drawn")
        drawn += of_corpus
        if not of_corpus or drawn % EVERY == 1:
            yield entry


if __name__ == "__main__":
    if sys.argv[1:2] == ["--compile"]:
        sys.exit(compiled(Path(sys.argv[2]), sys.argv[3:]))
    sys.exit(main(sys.argv[1:]))
