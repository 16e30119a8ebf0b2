"""A profile: where Spark runs and the tables are, from `conf/profiles/<name>.yaml`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from trendlake.cep_core.errors import (
    BadValueError,
    FileUnreadableError,
    Place,
    UnknownKeyError,
    YamlSyntaxError,
    did_you_mean,
)
from trendlake.cep_core.yaml.source import plain, read_yaml
from trendlake.pipelines.errors import ProfileError
from trendlake.pipelines.project.lineage_settings import File, Http, Lineage
from trendlake.pipelines.project.paths import TABLE_NAME, Project
from trendlake.pipelines.redaction import HIDDEN, is_secret, keep_secret, redacted

SPARK_POOL = "spark"
"""Airflow's pool of all tasks that are Spark applications; set-up gives it as many slots as `limits.steps` says."""
SPARK_PROPERTIES = "TRENDLAKE_SPARK_PROPERTIES"
"""The variable that tells the DAGs the file of Spark's settings."""


class Limits(BaseModel):
    """`shard_rows`: the rows that one Python worker may hold at a time. `driver_rows`: the events that the driver reads
    and computes by itself, of tables on its own disk. `steps`: the Spark applications that Airflow may run at a
    time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    shard_rows: int = Field(default=4_000_000, ge=1)
    driver_rows: int = Field(default=250_000, ge=0)
    steps: int = Field(default=2, ge=1)


MASTERS = re.compile(r"local(-cluster)?(\[[^\]]+\])?|spark://\S+:\d+(,\S+:\d+)*|k8s://https?://\S+|yarn")
PYTHON = "spark.pyspark.python"
IMAGE = "spark.kubernetes.container.image"


class Profile(BaseModel):
    """`master`: Spark's, None to take what spark-submit gave; `warehouse`: URI, absolute path or path under the state
    folder, which a cluster's machines do not share; `sources`: the places of tables of sources that other programs
    write, by the sources' names: URIs, absolute paths or paths under the project's folder; `jars`: the folder of
    Delta's jars, absolute or under the project's folder, None for that of `trendlake setup`; `spark`: settings as Spark
    names them; `writers`: `one` is the user's word that a single process writes the warehouse at a time, None where
    several may; `lineage`: the receiver of events about runs, None for none; `batches`: which patterns without a key
    `batch` run together, None for none."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    master: str | None = None
    warehouse: str = Field(default="warehouse", min_length=1)
    sources: dict[str, str] = Field(default_factory=dict)
    jars: str | None = Field(default=None, min_length=1)
    spark: dict[str, str] = Field(default_factory=dict)
    writers: Literal["one"] | None = None
    limits: Limits = Limits()
    lineage: Lineage | None = None
    batches: Literal["by_source_and_schedule"] | None = None

    @field_validator("master")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None and not MASTERS.fullmatch(value):
            raise ValueError(f"expected local[N], spark://HOST:PORT, k8s://https://HOST:PORT or yarn, not '{value}'")
        return value

    @field_validator("warehouse")
    @classmethod
    def _shared(cls, value: str, info: ValidationInfo) -> str:
        if _cluster(info.data.get("master")) and not _absolute(value):
            raise ValueError("with a cluster, a URI or an absolute path that all its machines reach")
        return value

    @field_validator("sources")
    @classmethod
    def _tables(cls, value: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        for name, place in value.items():
            if not TABLE_NAME.fullmatch(name):
                raise ValueError(f"'{name}' is no name of a source: a lower case letter, then those, digits and _")
            if not place:
                raise ValueError(f"where the table of '{name}' lies: a URI or a path")
            if _cluster(info.data.get("master")) and not _absolute(place):
                raise ValueError(f"'{name}': with a cluster, a URI or an absolute path that all its machines reach")
        return value

    @field_validator("spark", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        """YAML's true and 4 as Spark writes them."""
        if not isinstance(value, Mapping):
            return value
        return {str(key): str(item).lower() if isinstance(item, bool) else str(item) for key, item in value.items()}

    @field_validator("spark")
    @classmethod
    def _pods(cls, value: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        """Spark finds out that these are missing only when no pod comes up."""
        missing = [name for name in (IMAGE, PYTHON) if not value.get(name)]
        if missing and str(info.data.get("master")).startswith("k8s://"):
            raise ValueError(f"Kubernetes needs {' and '.join(missing)}")
        return value

    @field_validator("limits")
    @classmethod
    def _one_writer(cls, value: Limits, info: ValidationInfo) -> Limits:
        """With one writer one step at a time, whatever the default is."""
        if info.data.get("writers") is None:
            return value
        if "steps" in value.model_fields_set and value.steps > 1:
            raise ValueError(f"steps: {value.steps} run at a time; with `writers: one` it is 1")
        return value.model_copy(update={"steps": 1})

    @property
    def on_cluster(self) -> bool:
        """Whether Spark's workers are, or may be, on other machines."""
        return _cluster(self.master)

    def warehouse_of(self, project: Project) -> str:
        """The warehouse as a path or URI Spark takes."""
        if _absolute(self.warehouse):
            return self.warehouse.rstrip("/")
        return str(project.state / self.warehouse)

    def sources_of(self, project: Project) -> dict[str, str]:
        """The places of the tables that other programs write, as paths or URIs Spark takes, by the sources' names."""
        return {
            name: place.rstrip("/") if _absolute(place) else str(project.root / place)
            for name, place in self.sources.items()
        }

    def lineage_of(self, project: Project) -> Lineage | None:
        """Where events go, a file under the project's state folder."""
        return None if self.lineage is None else self.lineage.under(project.state)


FIELDS: dict[tuple[str, ...], type[BaseModel]] = {
    (): Profile,
    ("limits",): Limits,
    ("lineage",): Lineage,
    ("lineage", "transport", "file"): File,
    ("lineage", "transport", "http"): Http,
}
"""The models by place in the file; for a transport pydantic also gives its type."""


def _cluster(master: str | None) -> bool:
    return master is not None and not master.startswith("local")


def _absolute(place: str) -> bool:
    return "://" in place or place.startswith("/")


def load_profile(project: Project, name: str | None = None) -> Profile:
    """The profile `name`, else of `TRENDLAKE_PROFILE`, else `local`. Raises ProfileError."""
    return read_profile(profile_path(project, name))


def profile_or_default(project: Project) -> Profile:
    """As `load_profile`; an empty profile if the file has mistakes, which the commands that need it report."""
    try:
        return load_profile(project)
    except ProfileError:
        return Profile()


def profile_path(project: Project, name: str | None = None) -> Path:
    """The file of `load_profile`. Raises ProfileError where there is none."""
    name = name or os.environ.get("TRENDLAKE_PROFILE") or "local"
    folder = project.root / "conf" / "profiles"
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = [file.stem for file in sorted(folder.glob("*.yaml"))]
        raise ProfileError(f"there is no profile '{name}' in {folder}", hint=did_you_mean(name, known))
    return path


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
        location = tuple(str(key) for key in first["loc"])
        keys = (*location[:2], *location[3:]) if location[:2] == ("lineage", "transport") else location
        unknown = first["type"] == "extra_forbidden"
        kind = UnknownKeyError if unknown else BadValueError
        known = FIELDS[location[:-1]].model_fields if unknown else ()
        said = "unknown key" if unknown else first["msg"].removeprefix("Value error, ")
        raise ProfileError(
            f"[{kind.code}] {'.'.join(keys)}: {said}",
            place=_hidden(source.place(keys, key=unknown)),
            hint=did_you_mean(keys[-1], known) if unknown else None,
        ) from None


def _hidden(place: Place | None) -> Place | None:
    """The place without its line where that names a secret."""
    if place is None:
        return None
    shown = f"{place.text.split(':')[0]}: {HIDDEN}" if is_secret(place.text) else redacted(place.text)
    return place if shown == place.text else replace(place, text=shown, column=1, width=1)
