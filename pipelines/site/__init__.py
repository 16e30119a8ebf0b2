"""The reports as a static site: a page of all patterns, a page of each, the pages of their runs.

`read_*` read facts from Delta tables, the run record and commits (`facts`). `pages` renders them with the templates of
`pipelines.report`, and `data_docs` lets Great Expectations write its own pages. Only aggregates leave Spark, so a
page's size depends on its charts, not on the data.
"""
