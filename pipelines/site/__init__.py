"""The reports as a static site: a page of all patterns, a page of each, the pages of their runs.

`read_*` turn Delta tables, the run record and commits into facts (`facts`), `pages` facts into HTML by the templates of
`pipelines.report`, `data_docs` has Great Expectations write its own pages. Only aggregates leave Spark: a page's size
goes with what is drawn, not with the data.
"""

from pipelines.site.build import Built, Site, build_site, plan_of, refresh_pattern

__all__ = ["Built", "Site", "build_site", "plan_of", "refresh_pattern"]
