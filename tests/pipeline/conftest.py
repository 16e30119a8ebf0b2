"""A lake for each test."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from pipelines.profile import Profile
from pipelines.project import Project
from tests.pipeline.flights import Lake


@pytest.fixture
def lake(spark: SparkSession, project: Project) -> Lake:
    return Lake(spark, project, Profile(master="local[2]"))
