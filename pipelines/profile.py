"""A profile: where Spark runs and the warehouse lies, from `conf/profiles/<name>.yaml`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from cep_core.errors import BadValueError, FileUnreadableError, Place, UnknownKeyError, YamlSyntaxError, did_you_mean
from cep_core.yaml_source import plain, read_yaml
from pipelines.errors import ProfileError
from pipelines.project import Project
from pipelines.secrets import HIDDEN, is_secret, keep_secret


class Limits(BaseModel):
    """What one Python worker may hold: `shard_rows` rows at a time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    shard_rows: int = Field(default=4_000_000, ge=1)


class Profile(BaseModel):
    """`master`: Spark's, None to take what spark-submit gave; `warehouse`: URI, absolute path or path under the state
    folder; `spark`: settings as Spark names them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    master: str | None = None
    warehouse: str = Field(default="warehouse", min_length=1)
    spark: dict[str, str] = Field(default_factory=dict)
    limits: Limits = Limits()

    @field_validator("spark", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        """YAML's true and 4 as Spark writes them."""
        if not isinstance(value, Mapping):
            return value
        return {str(key): str(item).lower() if isinstance(item, bool) else str(item) for key, item in value.items()}

    def warehouse_of(self, project: Project) -> str:
        """The warehouse as a path or URI Spark takes."""
        if "://" in self.warehouse or self.warehouse.startswith("/"):
            return self.warehouse.rstrip("/")
        return str(project.state / self.warehouse)


def load_profile(project: Project, name: str | None = None) -> Profile:
    """The profile `name`, else of `TRENDLAKE_PROFILE`, else `local`. Raises ProfileError."""
    name = name or os.environ.get("TRENDLAKE_PROFILE") or "local"
    folder = project.root / "conf" / "profiles"
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = [file.stem for file in sorted(folder.glob("*.yaml"))]
        raise ProfileError(f"there is no profile '{name}' in {folder}", hint=did_you_mean(name, known))
    return read_profile(path)


def read_profile(path: Path) -> Profile:
    """The profile in the file at `path`. Raises ProfileError, pointing at the first mistake."""
    try:
        source = read_yaml(path)
    except (FileUnreadableError, YamlSyntaxError) as error:
        raise ProfileError(error.message, place=_hidden(error.place)) from None
    if not isinstance(source.data, Mapping):
        raise ProfileError("a profile is a mapping of keys", place=source.place(()))
    try:
        profile = Profile.model_validate(plain(source.data))
        keep_secret(profile.spark)
        return profile
    except ValidationError as failure:
        first = failure.errors()[0]
        keys = tuple(first["loc"])
        unknown = first["type"] == "extra_forbidden"
        kind = UnknownKeyError if unknown else BadValueError
        known = Limits.model_fields if len(keys) > 1 else Profile.model_fields
        raise ProfileError(
            f"[{kind.code}] {'.'.join(str(key) for key in keys)}: {'unknown key' if unknown else first['msg']}",
            place=_hidden(source.place(keys, key=unknown)),
            hint=did_you_mean(str(keys[-1]), known) if unknown else None,
        ) from None


def _hidden(place: Place | None) -> Place | None:
    """The place without its line where that names a secret."""
    if place is None or not is_secret(place.text):
        return place
    return replace(place, text=f"{place.text.split(':')[0]}: {HIDDEN}", column=1, width=1)
