"""The texts of contracts that published results were judged by, in the folder `contracts` of the warehouse.

Notes name a contract by its fingerprint alone. The text tells, after an edit, which rows the earlier contract took for
good. It is written before a publication names it, under another name first, and believed only where its contract has
the fingerprint asked for. Without the folder the next edit of a contract
costs one recomputation.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.contracts.contract import Contract, load_contract


@dataclass(frozen=True)
class EarlierTexts:
    """`folder`: None where the warehouse is not on this machine's disk; nothing is remembered then."""

    folder: Path | None

    def read(self, name: str, fingerprint: str) -> Contract | None:
        """The contract of the table `name` that had the fingerprint; None where its text is not stored, or damaged."""
        if self.folder is None:
            return None
        try:
            contract = load_contract(self._file(name, fingerprint))
        except (TrendlakeError, OSError, ValueError):
            return None
        return contract if contract.fingerprint == fingerprint else None

    def remember(self, contract: Contract, path: Path) -> None:
        """Stores the text of a contract, which the file at `path` has. A warehouse that is read-only keeps nothing."""
        if self.folder is None or self.read(contract.name, contract.fingerprint) is not None:
            return
        file = self._file(contract.name, contract.fingerprint)
        partial = file.with_name(f".partial-{uuid4().hex}")
        with suppress(OSError):
            text = path.read_bytes()
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                partial.write_bytes(text)
                partial.replace(file)
            finally:
                partial.unlink(missing_ok=True)

    def _file(self, name: str, fingerprint: str) -> Path:
        assert self.folder is not None
        return self.folder / fingerprint / f"{name}.yaml"
