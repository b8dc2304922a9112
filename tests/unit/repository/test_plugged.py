"""Nothing in the package lies unused: modules, functions, methods and settings are reached, or named here.

The texts are searched, not parsed: that takes a second instead of ten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from situ.settings.model import ABOUT, Overlay

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src"

ENTRIES = (
    "situ",  # the public interface
    "situ.cli.main",  # the command
    "situ.__main__",  # the same by `python -m situ`
    "situ.testing",  # what tests of users take
    "situ.bus.memory",  # of that
    "situ.spark",  # for programs that use Spark
)
LOADED_BY_FOLDER = "situ.registry.migrations"
"""Alembic finds these by their place."""

WAITING_MODULES = {
    # Quality between routers, for zones that are linked.
    "situ.quality.overlay",
    "situ.quality.overlay.forwarder",
    "situ.quality.overlay.offers",
    # Routers that exchange interest wait for the overlay, and so does the simulator of brokers.
    "situ.protocol.hop_by_hop",
    "situ.routing.covering",
}
WAITING_NAMES = {
    "delivery_path",
    "from_words",
    "least_extra_cost",
    "sees_as_much",
    "transformation_path",
}
PUBLIC = {"react"}
"""Of the client library, for users alone."""
CALLED_BY_LIBRARIES = {
    # Spark's data sources
    "streamReader",
    "initialOffset",
    "getDefaultReadLimit",
    "latestOffset",
    "prepareForTriggerAvailableNow",
    "streamWriter",
    # types of SQLAlchemy, dumpers of YAML
    "process_bind_param",
    "process_result_value",
    "ignore_aliases",
}
GENERATED_CALLS = "situ.lang.expr.runtime"
"""Generated code calls its functions by names that are put together."""

_STRINGS = re.compile(r'""".*?"""', re.DOTALL)
_COMMENTS = re.compile(r"#[^\n]*")
_FROM = re.compile(r"^ *from (situ[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_NAMED = re.compile(r"\bimport (situ[\w.]*)|[\"'](situ(?:\.\w+)+)")
_DEFINED = re.compile(r"^(?: {4})?(?:async def|def|class) ([a-zA-Z]\w*)", re.MULTILINE)
_WORDS = re.compile(r"\w+")


@cache
def modules() -> Mapping[str, str]:
    """The texts of all modules, without comments and docstrings."""
    found = {}
    for path in sorted((SOURCE / "situ").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = code_of(path)
    return found


def code_of(path: Path) -> str:
    return _COMMENTS.sub("", _STRINGS.sub("", path.read_text()))


def named_modules(text: str) -> Iterator[str]:
    """What a module imports, at its top or later, and modules that it names in texts, as ``situ.cli.x:command``."""
    for module, names in _FROM.findall(text):
        yield module
        yield from (f"{module}.{name}" for name in _WORDS.findall(names))
    yield from (name for pair in _NAMED.findall(text) for name in pair if name)


def reached() -> set[str]:
    texts, found = modules(), set[str]()
    waiting = [name for name in texts if name in ENTRIES or name.startswith(LOADED_BY_FOLDER)]
    while waiting:
        name = waiting.pop()
        if name not in found and name in texts:
            found.add(name)
            waiting += [name.rpartition(".")[0], *named_modules(texts[name])]
    return found


def test_every_module_is_reached_from_the_command_or_the_public_interface() -> None:
    assert modules().keys() - reached() == WAITING_MODULES


def used_names() -> set[str]:
    """Names in code, other than where they are defined or imported, and words of the documentation."""
    texts = list(modules().values())
    for folder in ("scripts", "benchmarks", "examples"):
        texts += [code_of(path) for path in (ROOT / folder).rglob("*.py")]
    found = {word for text in texts for word in _WORDS.findall(_DEFINED.sub("", _FROM.sub("", text)))}
    pages = (page for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts)
    return found.union(*(_WORDS.findall(page.read_text()) for page in pages))


def test_every_public_name_is_used_outside_of_tests() -> None:
    used = used_names()
    unused = {
        name
        for module, text in modules().items()
        if module != GENERATED_CALLS
        for block in text.split("\n\n")
        if ".command(" not in block.partition("def ")[0]  # a decorator that makes a command of it
        for name in _DEFINED.findall(block)
        if name not in used
    }
    assert unused == WAITING_NAMES | PUBLIC | CALLED_BY_LIBRARIES


def test_settings_that_nothing_reads_say_so() -> None:
    texts = [path.read_text() for path in (SOURCE / "situ").rglob("*.py") if "settings" not in path.parts]
    read = {name for text in texts for name in re.findall(r"\boverlay\.(\w+)", text)}
    silent = {each.name for each in fields(Overlay) if each.metadata[ABOUT].startswith("no effect yet: ")}
    assert silent == {each.name for each in fields(Overlay)} - read
    assert silent, "when zones are linked, this list ends"


@pytest.mark.parametrize("kind", ["unit", "property", "integration"])
def test_tests_stand_where_the_package_stands(kind: str) -> None:
    packages = {each.parent.name for each in (ROOT / "src" / "situ").glob("*/__init__.py")}
    folders = {
        each.parent.relative_to(ROOT / "tests" / kind).as_posix() for each in (ROOT / "tests" / kind).rglob("test_*.py")
    }
    assert folders <= packages | {"repository"}
