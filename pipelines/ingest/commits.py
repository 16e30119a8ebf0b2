"""Commits to the tables of sources: each carries a note, is looked for afterwards, and follows the one before it.

Two deliveries at once could both find a key missing and both append it: appends do not conflict in Delta. So every
writer of a keyed source raises the number of one transaction (`LINE`), as publications do: of two at once Delta
refuses one as a conflict, and skips a write whose number has been reached. It is then tried again from the table as it
is.
"""

from __future__ import annotations

from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.lake.commit import Commit
from trendlake.pipelines.lake.commits import find_commit
from trendlake.pipelines.lake.here.write import GROUP_BYTES
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import OvertakenError

COMPRESSED = 8
"""How many times as long documents are about as what becomes of them: Parquet's writer in Java counts that."""
LINE = "source writes"
"""The application id of the transactions that write to a source's table."""


def writing_lake(lake: Lake, token: str, version: int | None, contract: Contract) -> Lake:
    """The lake with a session whose one write carries `token`, and commits only where no other writer of the source has
    since `version`, which was read; where that is None, whoever came between."""
    own = lake.with_new_session()
    own.spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", token)
    if contract.documents is not None:
        own.spark.conf.set("parquet.block.size", str(GROUP_BYTES // COMPRESSED))
    if version is not None:
        own.spark.conf.set("spark.databricks.delta.write.txnAppId", LINE)
        own.spark.conf.set("spark.databricks.delta.write.txnVersion", str(version + 1))
    return own


def changes_rows(commit: Commit) -> bool:
    """Whether a commit may change rows of a table: not one that only puts files together or removes old ones."""
    puts_together = "compaction" in commit.note or commit.note.get("stage") == "compact"
    return not puts_together and commit.operation not in ("OPTIMIZE", "VACUUM START", "VACUUM END")


def own_commit(lake: Lake, path: str, token: str) -> Commit:
    """The commit that carries `token`. Raises OvertakenError where there is none: another writer came first."""
    commit = find_commit(lake, path, token)
    if not commit.in_history:
        raise OvertakenError
    return commit
