"""Revises published results after a change of the source.

`change_feed` reads the changes, `affected` finds the windows to recompute, `difference` gives the inserts, updates and
retractions. Small revisions run without a Spark job (`local`, `row_diff`, `local_rewrite`).
"""
