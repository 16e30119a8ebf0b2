"""Airflow's local settings. Where its database is SQLite, a savepoint waits for its turn to write.

Python's sqlite3 opens no transaction for a savepoint, which so begins one that only reads. If another process commits
between its first SELECT and its first INSERT, SQLite refuses the INSERT at once ("database is locked"), however long
the timeout of the connection is: the values read are out of date. Airflow makes the runs of a backfill and the events
of an asset in savepoints. A transaction that begins with one says, therefore, that it will write; then it waits.

The scheduler imports what tasks need before it forks them, whatever its database is.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["create_metadata_engine"]


def create_metadata_engine(
    sql_alchemy_conn: str, *, engine_args: dict[str, Any], connect_args: dict[str, Any]
) -> Engine:
    """Airflow's engine for its database; Airflow calls this instead of its own (`airflow.settings`)."""
    from sqlalchemy import create_engine, event  # a task, which has no database, loads these settings too

    engine = create_engine(sql_alchemy_conn, connect_args=connect_args, **engine_args)
    event.listen(engine, "savepoint", will_write)
    return engine


def will_write(connection: Connection, name: str) -> None:
    """Before a savepoint: opens the transaction that sqlite3 has not opened yet, one that may write."""
    held = connection.connection.dbapi_connection
    if held is not None and not held.in_transaction:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def import_ahead() -> None:
    """Imports what the file of a pattern's DAGs does. Each task is a fork of a fork of the scheduler, and executes that
    file: it takes a second to import all of it, longer than a task whose step is done has to do."""
    if "trendlake_dags" not in sys.modules:
        with suppress(Exception):  # it shows where it is needed
            import_module("trendlake_dags")
            import_module("trendlake.cep_core.kinds")


if "scheduler" in sys.argv:
    os.register_at_fork(before=import_ahead)
