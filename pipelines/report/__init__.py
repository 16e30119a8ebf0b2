"""The report of a run: one self-contained HTML page and a PNG of its chart.

`read_*` read facts from Delta tables and YAML, `view` turns facts into text, `chart` and `render` write the files.
"""
