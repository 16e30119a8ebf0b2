"""Where XML files have the documents of a source: custom properties of the contract's table, which `ingest` reads.

`{property: documentPath, value: //item}` names the elements that become documents of their own (default: the root),
`idPath` and `timePath`, from such an element, its id and time, `timeFormat` how its time is written.
"""

from __future__ import annotations

from dataclasses import dataclass

from trendlake.cep_core.documents.path_parser import parse_path
from trendlake.cep_core.documents.path_tokens import Namespaces, PathError
from trendlake.cep_core.documents.paths import Path
from trendlake.cep_core.errors import BadPatternError, BadValueError, NotSupportedError, TrendlakeError, did_you_mean
from trendlake.cep_core.yaml.source import Source
from trendlake.pipelines.contracts.odcs import Document
from trendlake.pipelines.contracts.properties import OF_DOCUMENTS

ISO, RFC822, EPOCH_SECONDS = "iso8601", "rfc822", "epoch_seconds"
FORMATS = (ISO, RFC822, EPOCH_SECONDS)
ROOT = Path(())
"""No step: the root element is the document."""


@dataclass(frozen=True)
class DocumentPaths:
    """`document`: an absolute path without predicates. `id`, `time`: from the document's element; None where the
    contract does not say, so that XML files are not read. `texts`: the paths as they are written."""

    document: Path = ROOT
    id: Path | None = None
    time: Path | None = None
    format: str = ISO
    texts: tuple[tuple[str, str], ...] = ()

    def text(self, name: str) -> str:
        """A property as it is written."""
        return dict(self.texts).get(name, "")


def document_paths_of(document: Document, source: Source, errors: list[TrendlakeError]) -> DocumentPaths:
    """The contract's properties for XML files; mistakes are added to `errors`."""
    paths: dict[str, Path] = {}
    texts: dict[str, str] = {}
    for number, custom in enumerate(document.table.custom_properties):
        name, value = custom.property, custom.value
        if name not in OF_DOCUMENTS:
            continue
        at = ("schema", 0, "customProperties", number, "value")
        if not isinstance(value, str):
            errors.append(BadValueError(f"{name} is a text, not {value!r}", place=source.place(at)))
            continue
        texts[name] = value
        if name == "timeFormat":
            if value not in FORMATS:
                hint = did_you_mean(value, FORMATS) or f"{', '.join(FORMATS)}"
                message = f"timeFormat of documents: unknown format '{value}'"
                errors.append(BadValueError(message, place=source.place(at), hint=hint))
            continue
        try:
            paths[name] = _path(name, value)
        except PathError as error:
            place = source.place(at, offset=error.offset, width=error.width)
            message = f"{name}: {error.error.message}"
            errors.append(type(error.error)(message, place=place, hint=error.error.hint))
    texts.setdefault("timeFormat", ISO)
    return DocumentPaths(
        paths.get("documentPath", ROOT),
        paths.get("idPath"),
        paths.get("timePath"),
        texts["timeFormat"],
        tuple(sorted(texts.items())),
    )


def _path(name: str, text: str) -> Path:
    """Raises PathError."""
    if name == "documentPath":
        if text.strip() == "/":
            return ROOT
        variable, path = parse_path(text, Namespaces())
        if variable is not None:
            error = BadPatternError("the path begins at the document, not at a variable", hint="such as //item")
            raise PathError(error, 0, len(text))
        if any(step.attribute or step.predicates for step in path.steps):
            reason = "documentPath names elements, by steps without predicates"
            raise PathError(NotSupportedError(reason, hint="such as /rss/channel/item or //*:entry"), 0, len(text))
        return path
    if text.lstrip().startswith("$"):
        raise PathError(BadPatternError("the path begins at the document's element", hint="such as guid"), 0, len(text))
    before = "$e" if text.lstrip().startswith("/") else "$e/"
    try:
        return parse_path(before + text, Namespaces())[1]
    except PathError as error:
        raise PathError(error.error, max(0, error.offset - len(before)), error.width) from None
