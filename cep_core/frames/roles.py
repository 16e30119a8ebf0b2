"""The columns of an event that a table of Arrow names by itself, in the metadata of its schema."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

PREFIX = "trendlake."


def with_roles(table: pa.Table, roles: Mapping[str, str]) -> pa.Table:
    """The table, whose schema names the columns that play these roles, as `evaluate` calls them."""
    stated = {f"{PREFIX}{role}": name for role, name in roles.items()}
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **stated})


def roles_of(schema: pa.Schema) -> dict[str, str]:
    """The columns that a schema names, by role; those it does not have are left out."""
    stated = {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
    named = {key.removeprefix(PREFIX): name for key, name in stated.items() if key.startswith(PREFIX)}
    return {role: name for role, name in named.items() if name in schema.names}
