"""What `situ`, `situ.testing` and `situ.spark` name is what the reference shows, and all that pages use."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

import situ
import situ.spark
import situ.testing

ROOT = Path(__file__).parents[3]
OPEN = (situ, situ.testing, situ.spark)
PUBLIC = {f"{module.__name__}.{name}" for module in OPEN for name in module.__all__}
INNER = sorted(
    path.stem
    for path in (ROOT / "src" / "situ").iterdir()
    if not path.stem.startswith(("_", ".")) and path.stem != "py"
)
PAGES = sorted(
    path
    for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"))
    if "internals" not in path.parts
)
PROGRAMS = sorted(ROOT.glob("examples/**/*.py"))

_ENTRY = re.compile(r'^### <a id="\w+"></a>`(situ\.[\w.]+)`$', re.MULTILINE)
_PYTHON = re.compile(r"^ *```py(?:thon)?(?![a-z])[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_DEEP = re.compile(
    rf"\b(?:from|import) situ\.(?!testing\b|spark\b)\w+|\bsitu\.(?:{'|'.join(set(INNER) - {'testing', 'spark'})})\.\w+"
)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_the_page_shows_every_public_name_and_no_other() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    assert sorted(_ENTRY.findall(page)) == sorted(PUBLIC - {"situ.__version__"})


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_is_there_and_says_what_it_is(name: str) -> None:
    module, _, own = name.rpartition(".")
    found = getattr(next(each for each in OPEN if each.__name__ == module), own)
    assert found.__doc__


def test_a_name_that_is_not_there_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Node'"):
        situ.Node  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'Bus'"):
        situ.testing.Bus  # noqa: B018


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    program = "import sys, situ, situ.testing, situ.spark; print([each for each in sys.modules if each[:5] == 'situ.'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert ast.literal_eval(done.stdout) == ["situ.testing", "situ.spark"]


def deeper(source: str) -> Iterator[str]:
    """What a program names that is not public: below `situ`, not among its names, or private and not its own."""
    tree = ast.parse(source)
    own = {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)} | {
        each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from (
                    each.name for each in node.names if each.name.startswith("situ.") and not _is_open(each.name)
                )
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] == "situ":
                yield from (each for each in (f"{module}.{one.name}" for one in node.names) if not _is_open(each))
            case ast.Attribute(value=ast.Name(id="situ")) if not _is_open(f"situ.{node.attr}"):
                yield f"situ.{node.attr}"
            case ast.Attribute(attr=attr) if attr.startswith("_") and not attr.startswith("__") and attr not in own:
                yield attr
            case _:
                pass


def _is_open(name: str) -> bool:
    return name in PUBLIC or name in ("situ.testing", "situ.spark")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import situ\nsitu.connect()", []),
        ("from situ import connect", []),
        ("from situ.testing import Zone", []),
        ("import situ.testing\nsitu.testing.Zone", []),
        ("from situ.client.client import Client", ["situ.client.client.Client"]),
        ("import situ.bus.memory", ["situ.bus.memory"]),
        ("import situ\nsitu.client.connection", ["situ.client"]),
        ("from situ.testing import Bus", ["situ.testing.Bus"]),
        ("client._session", ["_session"]),
    ],
)
def test_what_is_deeper_is_found(source: str, found: list[str]) -> None:
    assert list(deeper(source)) == found


@pytest.mark.parametrize("path", PROGRAMS, ids=named)
def test_a_program_of_an_example_uses_public_names_alone(path: Path) -> None:
    assert list(deeper(path.read_text())) == []


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_a_page_names_nothing_deeper_than_the_public_names(path: Path) -> None:
    text = path.read_text()
    assert [each.group() for each in _DEEP.finditer(text)] == []
    assert {f"situ.{name}" for name in INNER if name not in ("testing", "spark")} & set(
        re.findall(r"`(situ\.\w+)`", text)
    ) == set()
    for source in _PYTHON.findall(text):
        assert list(deeper(_as_function(source))) == []


def _as_function(source: str) -> str:
    """A part of a program, which may wait."""
    lines = "\n".join(f"    {line}" for line in dedent(source).splitlines())
    return f"async def part():\n{lines}\n"
