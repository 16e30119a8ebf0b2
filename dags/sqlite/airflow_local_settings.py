"""Airflow's local settings where its database is SQLite: a savepoint waits for its turn to write.

Python's sqlite3 opens no transaction for a savepoint, which so begins one that only reads. If another process commits
between its first SELECT and its first INSERT, SQLite refuses the INSERT at once ("database is locked"), however long
the timeout of the connection is: the values read are out of date. Airflow makes the runs of a backfill and the events
of an asset in savepoints. A transaction that begins with one says, therefore, that it will write; then it waits.
"""

from __future__ import annotations

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
