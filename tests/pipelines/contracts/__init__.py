"""Contracts of sources and of results."""
