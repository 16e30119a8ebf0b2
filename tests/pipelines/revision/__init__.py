"""Revisions: what changed events do to results."""
