"""Compiled code that kinds share."""
