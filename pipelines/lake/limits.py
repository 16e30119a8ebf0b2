"""How much this process takes on by itself: all numbers that decide whether it does a thing here or Spark does it.

Each is a bound on what is held in memory at once, some hundred MB at most, or on work that Spark spreads over cores.
They are read where they are used, as `limits.NAME`, so that a test sets one here. docs/limits.md says what each means.
"""

from __future__ import annotations

READ = 250_000
"""Rows of a table that one answer needs: events near some windows, the rows of a file."""
FILES = 2_000
"""Files of a table that are looked at one after the other."""
DOCUMENT_BYTES = 64 << 20
"""Bytes of files of a table of documents that are read whole."""
SEARCHED_BYTES = 512 << 20
"""Bytes, not compressed, of documents that are looked through for a few of them."""
FEED_BYTES = 64 << 20
"""Bytes of files that tell the changes of a table of documents."""

DELIVERED = 250_000
"""Rows of a delivery that are written."""
REWRITTEN_BYTES = 256 << 20
"""Bytes of the files that a commit may write again."""
COMPACTED_BYTES = 2 << 30
"""Bytes of small files that `maintain` puts together: it reads and writes them one after the other."""
KEYS_COMPARED = 20_000_000
"""Rows of a source whose keys are held together with those of a delivery, or of changed rows; and staged rows."""
KEYS_SENT = 500_000
"""Keys that are sent to each of Spark's workers; more are shuffled."""
QUARANTINE_READ = 50_000
"""Rows of a quarantine that are read."""

JUDGED_WHOLE = 250_000
"""Rows of a source that are all read and judged at each run; of a larger one the verdicts are kept, file by file."""
DOCUMENTS_JUDGED = 10_000
"""As `JUDGED_WHOLE`, of documents."""
JUDGED = 1_000_000
"""Rows that are held in memory to be judged, some 600 MB: of a source those that break a rule or share a key."""
ASKED_OF_MANY = 50
"""All hashes are sorted if a run has more than one row of so many; those of fewer rows are looked for."""
HASHES_SORTED = 1 << 24
"""Hashes of keys that are sorted at once; of more of them one range after another."""
QUARANTINED = 10_000
"""Broken rows that are written to a quarantine."""
VALIDATED = 500_000
"""Rows, of the columns that rules speak of, that Great Expectations is given."""
CHECKED = 50_000
"""Staged rows of all runs of a step that are held together to be judged; more are judged file by file."""
PUBLISHED = 500_000
"""Rows of the windows of a run, staged or published, that are compared and written. Of more staged rows the files
become files of the table."""
REFERENCE_BYTES = 256 << 20
"""Bytes of the columns of a reference table that lookups read: every worker holds them."""
REVISED = 500_000
"""Rows of a revision: those that have changed, and those of the windows that they touch."""
STRETCHES = 1_000
"""Stretches of windows, apart from one another, that a revision computes one after the other."""
MATCHED = 250_000
"""Changed rows of a revision on Spark that are collected, to see which of them the pattern may match."""

RECORDS = 100_000
"""Run records that are read."""
NARROW_RECORDS = 1_000_000
"""Run records, where only a few short columns are read."""
RESULTS_READ = 2_000_000
"""Rows of results that are shown or exported: some 200 MB."""
COMPARED = 200_000
"""Rows of a version of results, or changes of rows, that `diff` and `history` compare."""
PAGE_BYTES = 512 << 20
"""Bytes that the database of a page holds in memory; the rest of its tables is stored on disk."""
PAGE_ROWS = 50_000
"""Rows of results that a page holds between two passes; more are read again from its database."""
CHANGES_READ = 10_000
"""Changes of a publication that a page reads."""
CHANGES_SAMPLED = 100_000
"""Changes of a publication from which a page takes a sample: the changes of a larger one are not read again."""
STATISTICS = 100_000
"""Statistics of files that the page of a source reads, one for each column of each row group."""
