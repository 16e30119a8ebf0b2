"""The pages of a project."""
