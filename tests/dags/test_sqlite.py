"""The database of an Airflow on one machine: who writes in a part of a transaction waits for its turn."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import OperationalError

from trendlake.jobs.airflow.home import LOCAL_SETTINGS

SECONDS = 30


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Set as `trendlake airflow` sets its own."""
    path = tmp_path / "airflow.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE dag_run (who TEXT)")
    return path


@pytest.fixture
def settings() -> Iterator[object]:
    """The module as Airflow finds it: by its name, in a folder of the path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(LOCAL_SETTINGS)
        patch.delitem(sys.modules, "airflow_local_settings", raising=False)
        import airflow_local_settings

        yield airflow_local_settings


def read_then_write(engine: Engine, path: Path) -> None:
    """As Airflow makes a run of a backfill: in a savepoint, after a look at the runs there are. Meanwhile another
    writes."""
    tried = Event()

    def other() -> None:
        with closing(sqlite3.connect(path, timeout=SECONDS, isolation_level=None)) as connection:
            tried.set()
            connection.execute("INSERT INTO dag_run VALUES ('another')")

    with engine.connect() as connection, connection.begin():
        with connection.begin_nested():
            connection.execute(text("SELECT count(*) FROM dag_run")).scalar()
            thread = Thread(target=other)
            thread.start()
            assert tried.wait(SECONDS)
            thread.join(0.3)  # it is done, or waits
            connection.execute(text("INSERT INTO dag_run VALUES ('backfill')"))
        connection.execute(text("INSERT INTO dag_run VALUES ('its next')"))
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_a_savepoint_is_refused_without_them(database: Path) -> None:
    """What the settings are for: if this passes one day without them, they can go."""
    engine = create_engine(f"sqlite:///{database}?timeout={SECONDS}")
    with pytest.raises(OperationalError, match="database is locked"):
        read_then_write(engine, database)
    engine.dispose()


def test_a_savepoint_waits_with_them(database: Path, settings: object) -> None:
    engine = settings.create_metadata_engine(f"sqlite:///{database}?timeout={SECONDS}", engine_args={}, connect_args={})
    read_then_write(engine, database)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT who FROM dag_run")).scalars().all()
    assert sorted(rows) == ["another", "backfill", "its next"]
    engine.dispose()


def test_what_fails_in_a_savepoint_is_undone_and_the_rest_stays(database: Path, settings: object) -> None:
    engine = settings.create_metadata_engine(f"sqlite:///{database}?timeout={SECONDS}", engine_args={}, connect_args={})
    with engine.connect() as connection, connection.begin():
        connection.execute(text("INSERT INTO dag_run VALUES ('before')"))
        savepoint = connection.begin_nested()
        connection.execute(text("INSERT INTO dag_run VALUES ('inside')"))
        savepoint.rollback()
        connection.execute(text("INSERT INTO dag_run VALUES ('after')"))
    with engine.connect() as connection:
        assert connection.execute(text("SELECT who FROM dag_run")).scalars().all() == ["before", "after"]
    engine.dispose()
