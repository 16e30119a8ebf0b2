"""Random chains of edits, runs, late events and revisions: after each step the table has what a fresh one would have in
the windows that are published, and the ledger names all others. `make fuzz KIND=edits` tries chains without end."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.conftest import DRAWS
from tests.random.fuzz_edits import chain, failure
from tests.random.profile import share

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.random, pytest.mark.more_in_chaos]


@pytest.mark.long
@pytest.mark.parametrize("number", range(share(6) * DRAWS))
def test_a_chain_of_edits(spark: SparkSession, number: int) -> None:
    """The chain of this number, of up to five steps."""
    done = chain(number, most=5)
    assert failure(spark, done) is None, str(done)
