"""The page of the public names of `situ`, `situ.testing` and `situ.spark`, from their signatures and docstrings.

The examples are run by `tests/integration/repository/test_public_examples.py`, in the project that the page shows.
"""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import situ
import situ.spark
import situ.testing
from reference.markdown import anchored, block, code, head, sections, table
from reference.yard import YARD
from situ.client.capabilities import CapabilityHandler
from situ.client.expectations import ExpectationHandler

# The order of the page; a name that is not here stops the generation.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Connecting": ("connect", "connect_blocking", "Client", "BlockingClient", "ClientStatus"),
    "Publishing": ("AdvertisementHandle", "Receipt", "BlockingReceipt"),
    "Receiving": ("Registration", "Listener", "Event", "Situation"),
    "What goes wrong": ("SituError", "Problem", "Notice"),
    "Scopes": ("ScopeChangeReceipt", "WhyVisible"),
    "Contexts": (
        *("context", "maps_to", "transform_with", "conv_function", "declared_contexts", "Unit", "Typed"),
        "DefinedContext",
    ),
    "Quality": (
        *("RegisteredExpectation", "StateChange", "WhyQuality", "RegisteredProfile", "Usage"),
        *("Advice", "Accept", "Refuse", "ReactionManager"),
    ),
}
HANDLERS = {"expectations": ExpectationHandler, "capabilities": CapabilityHandler}
TESTING = ("Zone", "Clock", "MemoryBus", "PolicyCase")
SPARK = ("Project",)

_INTRODUCTION = """\
What programs import: the names of `situ`, those of `situ.testing` for tests, and those of `situ.spark` for Spark.
Everything below them may change in any release. [Test your policies and programs](../howto/test-your-programs.md) shows
`situ.testing` at work, [Use a project on Spark DataFrames](../howto/use-dataframes.md) `situ.spark`.

Every example here is run by a test. A zone of the project below runs in the current folder, `yard` is that folder, and
`gate` and `office` are two clients, connected by `situ.connect`. Imported are `asyncio`, `situ`, `situ.testing`,
and `dataclass`, `Annotated` and `Decimal` of the standard library. `await` outside of a function works in
`python -m asyncio` and in notebooks.
"""

_ROLE = re.compile(r":\w+:`~?(?:situ\.)?(?:\w+\.)*(\w+)`")
_LITERAL = re.compile(r"``([^`]+)``")


def page() -> str:
    placed = {name for names in GROUPS.values() for name in names}
    others = {*TESTING} != {*situ.testing.__all__} or {*SPARK} != {*situ.spark.__all__}
    if placed != {*situ.__all__} - {"__version__"} or others:
        raise ValueError(f"names without a place on the page, or none any more: {sorted(placed ^ {*situ.__all__})}")
    parts = [
        head("Python", "the docstrings of what `situ`, `situ.testing` and `situ.spark` name"),
        _INTRODUCTION,
        _overview(),
    ]
    parts += ["## The project of the examples\n", *(_file(name, text) for name, text in YARD.items())]
    for group, names in GROUPS.items():
        parts += [f"## {group}\n", *(_entry(situ, name) for name in names)]
        if group == "Quality":
            parts += [
                f"### {code(f'client.{name}')}\n\n{_markdown(cls.__doc__)}\n\n{_members(cls)}"
                for name, cls in HANDLERS.items()
            ]
    parts += ["## Tests: `situ.testing`\n", *(_entry(situ.testing, name) for name in TESTING)]
    parts += ["## DataFrames: `situ.spark`\n", *(_entry(situ.spark, name) for name in SPARK)]
    return sections(*parts)


def _overview() -> str:
    groups = {**GROUPS, "Tests: `situ.testing`": TESTING, "DataFrames: `situ.spark`": SPARK}
    rows = [[group, " · ".join(f"[{code(name)}](#{name})" for name in names)] for group, names in groups.items()]
    return table(["group", "names"], rows)


def _file(name: str, text: str) -> str:
    return block(f"# {name}\n{text.rstrip()}", "yaml" if name.endswith(".yaml") else "text")


def _entry(module: ModuleType, name: str) -> str:
    what = getattr(module, name)
    text, examples = _parts(what)
    if not examples:
        raise ValueError(f"{module.__name__}.{name} has no example")
    shown = _call(name, what) if inspect.isfunction(what) or _is_made_by_users(what) else f"class {name}"
    return sections(
        anchored(3, code(f"{module.__name__}.{name}"), name),
        block(shown, "text"),
        text,
        block(examples, "pycon"),
        _members(what) if inspect.isclass(what) else "",
    )


def _is_made_by_users(what: Any) -> bool:
    """Whether a class is called by programs; others are only given to them."""
    return what.__name__ in {"Accept", "Refuse", "Unit", "Typed", "ReactionManager", *TESTING, *SPARK}


def _parts(what: Any) -> tuple[str, str]:
    """The text of a docstring, as Markdown, and its examples."""
    doc = inspect.getdoc(what) or ""
    found = doctest.DocTestParser().get_examples(doc)
    text = doc.partition(">>>")[0].strip()
    return _markdown(text), doc[doc.index(">>>") :].strip() if found else ""


def _markdown(text: str) -> str:
    return _LITERAL.sub(r"`\1`", _ROLE.sub(r"`\1`", text))


def _members(cls: type) -> str:
    """What an object has: fields and properties, then calls. Of the blocking twin's calls only their names."""
    fields = [each.name for each in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else []
    fields += getattr(cls, "__struct_fields__", ())
    rows, same = [], []
    for name, member in _public(cls):
        function = member.__func__ if isinstance(member, classmethod) else member
        doc = _first(inspect.getdoc(function))
        if hasattr(function, "__wrapped__"):
            same.append(name)
        elif isinstance(member, property) and not doc:
            fields.append(name)
        elif isinstance(member, property):
            rows.append([code(name), doc])
        elif inspect.isfunction(function):
            rows.append([code(_call(name, function)), doc])
    fields = [each for each in fields if each not in _INTERNAL]
    return sections(
        f"Fields: {', '.join(map(code, fields))}.\n" if fields else "",
        f"Waited for, as those of `Client`: {', '.join(map(code, same))}.\n" if same else "",
        table(["member", "what it is"], rows) if rows else "",
    )


# What only the client library itself uses of what it gives to programs.
_INTERNAL = frozenset(
    "installing buffer consumer pages reading streaming ended held task callback content instant arrival".split()
)
_HIDDEN = frozenset(
    "as_json from_json open become require no_stream note told close_worker registry start_folder hand_over".split()
)


def _public(cls: type) -> Iterator[tuple[str, Any]]:
    for name, member in vars(cls).items():
        if not name.startswith("_") and name not in _HIDDEN:
            yield name, member


def _first(doc: str | None) -> str:
    return _markdown(" ".join((doc or "").split("\n\n")[0].split())).replace("|", "&#124;")


def _call(name: str, what: Any) -> str:
    signature = inspect.signature(what)
    parameters = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    texts: list[str] = []
    for each in parameters:
        keyword = each.kind is each.KEYWORD_ONLY
        if keyword and "*" not in texts and not any(text.startswith("*") for text in texts):
            texts.append("*")
        star = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else f"={_default(each.default)}"
        texts.append(f"{star}{each.name}{default}")
    prefix = "await " if inspect.iscoroutinefunction(what) else ""
    return f"{prefix}{name}({', '.join(texts)})"


def _default(value: Any) -> str:
    if isinstance(value, Mapping) and not value:
        return "{}"
    return "…" if callable(value) else repr(value)
