"""The Open Data Contract Standard 3.1 as a pydantic model: the shape of every file in `data_contracts/`.

https://bitol-io.github.io/open-data-contract-standard/v3.1.0/ . Keys the standard does not know are refused, as its
JSON schema does; what a rule or a type means to Trendlake is decided in `pipelines.contracts.contract`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

OPERATORS = (
    "must_be",
    "must_not_be",
    "must_be_greater_than",
    "must_be_greater_or_equal_to",
    "must_be_less_than",
    "must_be_less_or_equal_to",
    "must_be_between",
    "must_not_be_between",
)

LogicalType = Literal["string", "date", "timestamp", "time", "number", "integer", "object", "array", "boolean"]
Dimension = Literal["accuracy", "completeness", "conformity", "consistency", "coverage", "timeliness", "uniqueness"]


class Node(BaseModel):
    """One mapping of the standard: camelCase keys, unknown ones refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)


class CustomProperty(Node):
    id: str | None = None
    property: str
    value: Any = None
    description: str | None = None


class AuthoritativeDefinition(Node):
    id: str | None = None
    url: str
    type: str
    description: str | None = None


class Tagged(Node):
    """The keys that the standard allows on nearly every element."""

    id: str | None = None
    tags: tuple[str, ...] = ()
    custom_properties: tuple[CustomProperty, ...] = ()
    authoritative_definitions: tuple[AuthoritativeDefinition, ...] = ()

    def custom(self, name: str) -> Any:
        """The value of the custom property `name`, None when it is not given."""
        return next((item.value for item in self.custom_properties if item.property == name), None)


class Described(Tagged):
    description: str | None = None


class Quality(Described):
    """One data quality rule; `type` may be left out where `metric` is given."""

    name: str | None = None
    type: Literal["text", "library", "sql", "custom"] = "library"
    metric: Literal["nullValues", "missingValues", "invalidValues", "duplicateValues", "rowCount"] | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    must_be: float | None = None
    must_not_be: float | None = None
    must_be_greater_than: float | None = None
    must_be_greater_or_equal_to: float | None = None
    must_be_less_than: float | None = None
    must_be_less_or_equal_to: float | None = None
    must_be_between: tuple[float, float] | None = None
    must_not_be_between: tuple[float, float] | None = None
    unit: str | None = None
    query: str | None = None
    engine: str | None = None
    implementation: str | dict[str, Any] | None = None
    dimension: Dimension | None = None
    method: str | None = None
    severity: str | None = None
    business_impact: str | None = None
    scheduler: str | None = None
    schedule: str | None = None

    @property
    def operators(self) -> dict[str, Any]:
        """Operator -> value, of those given."""
        return {name: value for name in OPERATORS if (value := getattr(self, name)) is not None}

    @model_validator(mode="after")
    def _complete(self) -> Quality:
        if self.type == "library":
            if self.metric is None:
                raise ValueError("a library rule names its metric")
            if len(self.operators) != 1:
                raise ValueError("a library rule has exactly one operator, such as mustBe: 0")
        if self.type == "sql" and (not self.query or len(self.operators) != 1):
            raise ValueError("a sql rule has a query and exactly one operator")
        if self.type == "custom" and (not self.engine or self.implementation is None):
            raise ValueError("a custom rule has engine and implementation")
        return self


class Property(Described):
    """A column."""

    name: str
    business_name: str | None = None
    logical_type: LogicalType | None = None
    logical_type_options: dict[str, Any] = Field(default_factory=dict)
    physical_type: str | None = None
    physical_name: str | None = None
    required: bool = False
    unique: bool = False
    primary_key: bool = False
    primary_key_position: int = -1
    partitioned: bool = False
    partition_key_position: int = -1
    classification: str | None = None
    encrypted_name: str | None = None
    transform_source_objects: tuple[str, ...] = ()
    transform_logic: str | None = None
    transform_description: str | None = None
    examples: tuple[Any, ...] = ()
    critical_data_element: bool = False
    quality: tuple[Quality, ...] = ()


class SchemaObject(Described):
    """A table."""

    name: str
    business_name: str | None = None
    logical_type: Literal["object"] = "object"
    physical_type: str | None = None
    physical_name: str | None = None
    data_granularity_description: str | None = None
    properties: tuple[Property, ...] = Field(min_length=1)
    quality: tuple[Quality, ...] = ()


class ServiceLevel(Node):
    id: str | None = None
    property: str
    value: str | float | int | bool | None
    value_ext: str | float | int | bool | None = None
    unit: str | None = None
    element: str | None = None
    driver: str | None = None
    description: str | None = None
    scheduler: str | None = None
    schedule: str | None = None


class Description(Tagged):
    usage: str | None = None
    purpose: str | None = None
    limitations: str | None = None


class Document(Tagged):
    """A whole contract file."""

    version: str
    api_version: Literal["v3.1.0"]
    kind: Literal["DataContract"]
    id: str
    name: str | None = None
    tenant: str | None = None
    status: str
    servers: tuple[dict[str, Any], ...] = ()
    data_product: str | None = None
    description: Description | None = None
    domain: str | None = None
    schema_: tuple[SchemaObject, ...] = Field(alias="schema", min_length=1, max_length=1)
    support: tuple[dict[str, Any], ...] = ()
    price: dict[str, Any] | None = None
    team: dict[str, Any] | None = None
    roles: tuple[dict[str, Any], ...] = ()
    sla_properties: tuple[ServiceLevel, ...] = ()
    contract_created_ts: str | None = None

    @property
    def table(self) -> SchemaObject:
        """The one table a contract of Trendlake describes."""
        return self.schema_[0]
