"""Drawings of plans."""
