"""How Sphinx makes the site of `docs/` (`make docs`): which pages, in what order, and what breaks the build.

The pages are plain Markdown, in `docs/`. What only Sphinx needs is here: the navigation is made of the lists in
`docs/index.md`, and diagrams are drawn while the site is built, as no page may fetch anything from the network.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import mmdr
from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx
from sphinx.errors import SphinxError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # autodoc imports this clone

project = "Trendlake"
release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
root_doc = "index"
extensions = ["myst_nb", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown", ".ipynb": "myst-nb"}
nb_execution_mode = "off"
myst_heading_anchors = 6
default_role = "code"  # a name in backticks in a docstring
autodoc_typehints_format = "short"
# what `Project` imports, and the builder of the site has not: signatures and docstrings need none of it
autodoc_mock_imports = ["delta", "deltalake", "duckdb", "pandas", "py4j", "pyspark"]
maximum_signature_line_length = 100
suppress_warnings = ["misc.highlighting_failure"]  # Pygments does not know CSV, nor row patterns in SQL

html_theme = "furo"
html_title = f"Trendlake {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_search_scorer = str(ROOT / "scripts" / "docs" / "scorer.js")
html_show_search_summary = False  # it is fetched, which browsers refuse of files

FETCHED = re.compile(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="https?:|<link\b[^>]*\bhref="https?:')


def with_navigation(app: Sphinx, name: str, text: list[str]) -> None:
    """Gives each list of links in `docs/index.md` its place in the navigation, below the list's heading."""
    if name != root_doc:
        return
    for section in re.split(r"^## ", text[0], flags=re.MULTILINE)[1:]:
        pages = re.findall(r"^- \[[^]]+\]\(([\w/-]+)\.(?:md|ipynb)\)", section, flags=re.MULTILINE)
        if pages:
            head = f":hidden:\n:caption: {section.partition(chr(10))[0]}\n"
            text[0] += "\n```{toctree}\n" + head + "\n" + "\n".join(pages) + "\n```\n"


def with_drawings(app: Sphinx, document: nodes.document) -> None:
    """Draws each diagram whose text is in a Mermaid block."""
    for block in list(document.findall(nodes.literal_block)):
        if block.get("language") == "mermaid":
            drawing = f'<div class="diagram">{mmdr.render(block.astext()).svg()}</div>'
            block.replace_self(nodes.raw("", drawing, format="html"))


def refuse_fetching(app: Sphinx, error: Exception | None) -> None:
    """Raises SphinxError if a page would fetch something from the network."""
    pages = [path for path in Path(app.outdir).rglob("*.html") if FETCHED.search(path.read_text(encoding="utf-8"))]
    if error is None and pages:
        raise SphinxError(f"{', '.join(map(str, pages))}: a page fetches from the network")


def setup(app: Sphinx) -> None:
    app.add_source_parser(MystParser)  # myst_nb brings the parser of notebooks only
    app.connect("source-read", with_navigation)
    app.connect("doctree-read", with_drawings)
    app.connect("build-finished", refuse_fetching)
