"""A project's folders, profile and lineage settings."""
