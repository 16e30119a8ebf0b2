"""Folders, profiles and errors of a project."""
