"""The pipeline, in the rooms of pipelines."""
