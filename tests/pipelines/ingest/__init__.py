"""Deliveries into a source."""
