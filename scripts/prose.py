"""Checks the prose of the documents, of the command's help and of docstrings: long sentences, inversions, rare words.

`python -m scripts.prose` checks everything and exits with 1 if it finds something; `python -m scripts.prose FILE ...`
checks these Markdown or Python files. Code, links' targets and generated pages are not checked. A rule is one line in
`RULES`.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

MOST_WORDS = 40
"""Words between two full stops, colons or semicolons. Most sentences should have fewer than 25."""

GENERATED = {ROOT / "docs" / "reference.md", ROOT / "docs" / "benchmarks.md"}
RECORDS = ROOT / "docs" / "adr"
"""Decisions are kept in the words in which they were taken."""

PACKAGES = ("trendlake", "cep_core", "pipelines", "jobs", "dags")
"""The folders whose docstrings are checked."""


@dataclass(frozen=True)
class Rule:
    """`pattern` must match nowhere in a sentence; `advice` is what to write."""

    name: str
    pattern: str
    advice: str

    def matches(self, sentence: str) -> Iterator[str]:
        """The places of a sentence that break the rule, as text."""
        return (match.group().strip() for match in re.finditer(self.pattern, sentence))


RULES = (
    Rule("subject clause", r"^(?:What|Who|Whoever|Whatever|Which of)\b(?!.*\?$)", "begin with a noun as the subject"),
    Rule(
        "inversion",
        r"^(?:Not (?!all\b|every\b)|So (?:is|are|does|do|has|have|it)\b|Nor\b|Neither (?!side))",
        "the subject first, then the verb",
    ),
    Rule("of which", r"(?i)\bof (?:which|whom)\b", "two sentences, or 'that'"),
    Rule("what that", r"(?i)\bwhat (?:\w+ ){0,3}that\b", "name what it is"),
    Rule("told", r"(?i)\b(?:told|tells? of)\b", "reported, logged, sent or named"),
    Rule("set apart", r"(?i)\bset(?:s|ting)? (?:\w+ )?apart\b", "quarantined, quarantine"),
    Rule("passed over", r"(?i)\bpass(?:es|ed|ing) (?:\w+ )?over\b", "skipped, skip"),
    Rule("mend", r"(?i)\bmend(?:s|ed|ing)?\b", "fix, repair or correct"),
    Rule("anew", r"(?i)\banew\b", "again"),
    Rule("beside", r"(?i)\bbeside\b", "next to, with or compared with"),
    Rule("lies", r"(?i)\b(?:lies|lie|lay|lain)\b", "is, is stored"),
    Rule("stands", r"(?i)\bstands? (?:in|at|on|under|there|next)\b", "is in, is at"),
    Rule("nobody", r"(?i)\b(?:nobody|somebody|everybody)\b", "name the person, the program or the command"),
    Rule(
        "is there",
        r"(?i)\b(?:is|are|was|were) (?:not )?there(?: (?:already|twice|once|yet|not)\b|[.,;]|$)",
        "exists, is missing, is repeated",
    ),
    Rule("there is not", r"(?i)\bthat there (?:is|are) not\b", "unknown, missing"),
    Rule("to be had", r"(?i)\bto be had\b", "available"),
    Rule("need be", r"(?i)\bneeds? (?:not|be)\b", "does not have to, must"),
    Rule("save for", r"(?i)\bsave for\b", "except"),
    Rule(
        "by name",
        r"(?i)\b(?:refuse[sd]?|fail(?:s|ed)?|stop(?:s|ped)?)\b[^.;]{0,20} by name\b",
        "with an error that names it",
    ),
    Rule("says so", r"(?i)\bsa(?:ys?|id) so\b", "name what is reported"),
    Rule("word of the command", r"(?i)\bwords? of the command\b", "command"),
    Rule("made whole", r"(?i)\bwritten whole\b", "written atomically"),
    Rule(
        "archaic",
        r"(?i)\b(?:thereof|whereof|thereby|whereby|hence|upon|whilst|amongst|of one's own)\b",
        "a plainer word",
    ),
)


@dataclass(frozen=True)
class Finding:
    where: str
    rule: str
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.where}: {self.rule}: '{self.text}': write {self.advice}"


def sentences(text: str) -> Iterator[str]:
    """The sentences of one paragraph, list item or table cell. Code counts as one word, of a link only its text."""
    text = re.sub(r"(`+).+?\1", "`code`", text)
    text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text)
    text = re.sub(r"\*\*|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)", "", text)
    for part in re.split(r"(?<=[.!?;:])\s+", " ".join(text.split())):
        if part.strip():
            yield part.strip()


def broken_rules(sentence: str, rules: Iterable[Rule] = RULES) -> Iterator[tuple[str, str, str]]:
    """(rule, text, advice) of each place where a sentence breaks a rule."""
    words = len(re.findall(r"[^\s]*\w[^\s]*", sentence))
    if words > MOST_WORDS:
        yield "length", f"{sentence[:60]} ...", f"at most {MOST_WORDS} words, here {words}: one thought a sentence"
    for rule in rules:
        for text in rule.matches(sentence):
            yield rule.name, text, rule.advice


def paragraphs(markdown: str) -> Iterator[tuple[int, str]]:
    """(line, text) of the prose of a Markdown page: paragraphs, list items and table cells. Headings and code are left
    out."""
    started, lines, fence = 0, list[str](), ""
    for number, line in enumerate([*markdown.splitlines(), ""], 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        item = re.match(r"\s*(?:[-*+]|\d+\.)\s+(.*)", line)
        begins = bool(mark or item or not line.strip() or line.lstrip().startswith(("#", "|", "<")))
        if (begins or fence) and lines:
            yield started, " ".join(lines)
            lines = []
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark.group(1)
        elif fence or line.lstrip().startswith(("#", "<")):
            continue
        elif line.lstrip().startswith("|"):
            yield from ((number, cell) for cell in cells(line))
        elif line.strip():
            started = started if lines else number
            lines.append(item.group(1) if item else line)


def cells(row: str) -> Iterator[str]:
    """The cells of a table's row that hold prose."""
    for cell in re.split(r"(?<!\\)\|", row.strip().strip("|")):
        if re.search(r"[a-z]", cell):
            yield cell.strip()


def check_page(markdown: str, name: str) -> Iterator[Finding]:
    for line, text in paragraphs(markdown):
        for sentence in sentences(text):
            yield from (Finding(f"{name}:{line}", *broken) for broken in broken_rules(sentence))


def newest_section(changelog: str) -> str:
    """The changelog down to its second release, so that older entries stay as they were published."""
    parts = re.split(r"^(?=## )", changelog, flags=re.MULTILINE)
    return "".join(parts[:2])


def pages() -> Iterator[tuple[str, str]]:
    """(name, text) of each page that is checked."""
    documents = [path for path in sorted((ROOT / "docs").rglob("*.md")) if path not in GENERATED]
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *documents]:
        if RECORDS not in path.parents:
            yield str(path.relative_to(ROOT)), path.read_text()
    yield "CHANGELOG.md", newest_section((ROOT / "CHANGELOG.md").read_text())


def help_texts() -> Iterator[tuple[str, str]]:
    """(command, text) of the help of each command, option and argument."""
    from typer.main import get_command

    from trendlake.jobs.main import app

    def walk(name: str, command: Any) -> Iterator[tuple[str, str]]:
        yield name, command.help or ""
        for parameter in command.params:
            yield f"{name} {parameter.opts[0]}", getattr(parameter, "help", None) or ""
        if hasattr(command, "list_commands"):
            context = command.context_class(command)
            for inner in command.list_commands(context):
                yield from walk(f"{name} {inner}", command.get_command(context, inner))

    return walk("trendlake", get_command(app))


def check_help() -> Iterator[Finding]:
    for name, text in help_texts():
        for paragraph in re.split(r"\n\s*\n", text):
            for sentence in sentences(paragraph):
                yield from (Finding(f"help of {name}", *broken) for broken in broken_rules(sentence, RULES))


def modules() -> Iterator[Path]:
    """The Python files whose docstrings are checked."""
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each docstring of a module, class or function, and of each text below an attribute or field."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text)) as constant):
                yield constant.lineno, text


def check_module(source: str, name: str) -> Iterator[Finding]:
    """The findings of a module's docstrings. Lines that are indented by four spaces or more are examples, no prose."""
    for first, text in docstrings(source):
        head, *rest = text.splitlines() or [""]
        prose = [head, *textwrap.dedent("\n".join(rest)).splitlines()]
        markdown = "\n".join("" if line.startswith("    ") else line for line in prose)
        for line, paragraph in paragraphs(markdown):
            for sentence in sentences(paragraph):
                yield from (Finding(f"{name}:{first + line - 1}", *broken) for broken in broken_rules(sentence))


def check_file(file: Path, name: str) -> Iterator[Finding]:
    check = check_module if file.suffix == ".py" else check_page
    return check(file.read_text(), name)


def main(arguments: list[str]) -> int:
    if arguments:
        findings = [finding for file in arguments for finding in check_file(Path(file), file)]
    else:
        findings = [finding for name, text in pages() for finding in check_page(text, name)]
        findings += check_help()
        findings += [finding for file in modules() for finding in check_file(file, str(file.relative_to(ROOT)))]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
