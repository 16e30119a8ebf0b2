"""Expressions of the pattern language: type checks, and evaluation on columns, on single values and as bytecode."""
