"""The settings of a profile for lineage: where OpenLineage events go. Nothing in it names code to load, and no
secret."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

SECRET_TO = "OPENLINEAGE__TRANSPORT__AUTH__TYPE=api_key and OPENLINEAGE__TRANSPORT__AUTH__APIKEY"
"""Variables of the environment that OpenLineage's client adds to a transport, here and in Airflow."""


class File(BaseModel):
    """`log_file_path`: absolute, or under the state folder. With `append` each event is a line of it, else a file of
    its own whose name begins so."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["file"]
    log_file_path: str = Field(min_length=1)
    append: bool = True

    @field_validator("log_file_path")
    @classmethod
    def _local(cls, value: str) -> str:
        if "://" in value:
            raise ValueError("a path on this machine: a store is reached by type http")
        return value

    def client(self) -> dict[str, Any]:
        """As OpenLineage's client takes it."""
        return self.model_dump()


class Http(BaseModel):
    """`url`: of the server, to which `endpoint` is added; `timeout`: seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["http"]
    url: str
    endpoint: str = Field(default="api/v1/lineage", min_length=1)
    timeout: float = Field(default=5.0, gt=0)
    verify: bool = True
    compression: Literal["gzip"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_secret(cls, value: Any) -> Any:
        if isinstance(value, dict) and {"auth", "custom_headers"} & set(value):
            raise ValueError(f"keys of a server are not written here: give them as {SECRET_TO}")
        return value

    @field_validator("url")
    @classmethod
    def _server(cls, value: str) -> str:
        url = urlsplit(value)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError("expected http://HOST:PORT or https://HOST")
        if url.username or url.password:
            raise ValueError(f"keys of a server are not written here: give them as {SECRET_TO}")
        return value

    def client(self) -> dict[str, Any]:
        """As OpenLineage's client takes it. An event is sent once: a server that does not answer holds up no run."""
        return {**self.model_dump(exclude_none=True), "retry": {"total": 0}}


Transport = Annotated[File | Http, Field(discriminator="type")]


class Lineage(BaseModel):
    """`namespace`: of Trendlake's jobs; those of Airflow are in `airflow_namespace`. `transport`: where events go."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    namespace: str = Field(default="trendlake", min_length=1)
    transport: Transport

    @property
    def airflow_namespace(self) -> str:
        """One of its own: Airflow's task and the step that it starts would else have one name."""
        return f"{self.namespace}.airflow"

    def under(self, state: Path) -> Lineage:
        """The same with a file's path in full."""
        if not isinstance(self.transport, File):
            return self
        path = str(state / self.transport.log_file_path)
        return self.model_copy(update={"transport": self.transport.model_copy(update={"log_file_path": path})})

    def make_folder(self) -> None:
        """The folder of a file, which OpenLineage's client does not make."""
        if isinstance(self.transport, File):
            Path(self.transport.log_file_path).parent.mkdir(parents=True, exist_ok=True)
