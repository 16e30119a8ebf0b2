"""Evaluates `expect` of pattern files.

`evaluate` compares a window with earlier ones, `read` reads their rows on Spark, `checks` makes the checks of a step's
record.
"""
