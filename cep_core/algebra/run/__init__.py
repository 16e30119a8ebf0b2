"""Runs plans of kind algebra over tables of events."""
