"""A project's folders, profile and settings."""
