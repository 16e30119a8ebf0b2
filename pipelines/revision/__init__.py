"""Revises published results after a change of the source.

`change_feed` reads the changes, `affected` finds the windows to recompute, `difference` gives the inserts, updates and
retractions. `revision` is the protocol: `spark` computes any revision, `local` small ones without a Spark job (with
`row_diff` and `rewrite`).
"""
