"""Evaluates `expect` of pattern files.

`evaluate` compares a window with earlier ones, `read` reads their rows on Spark, `checks` adds the verdicts to a step's
record.
"""
