"""The rings hold: on the real tree, and the check finds every kind of violation planted in a copy of it."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src" / "situ"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]

RINGS, LANGUAGE, PROTOCOL, SPARK, PINT, PURE, *_ = NAMES = [contract["name"] for contract in CONTRACTS]
DOORS = [contract for contract in CONTRACTS if contract["type"] == "protected"]


@dataclass(frozen=True)
class Verdict:
    """What the linter says of a tree: the contracts that do not hold, and the imports it names for each."""

    broken: frozenset[str]
    found: Mapping[str, str]


def lint(tree: Path) -> Verdict:
    """Check the ``src`` folder of ``tree``. It costs seconds, so tests plant much and look once."""
    answer = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--config", tree / "pyproject.toml"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    verdicts, _, details = answer.stdout.partition("Broken contracts\n")
    told = {
        name: line.removeprefix(name).split()[0]
        for line in verdicts.splitlines()
        for name in NAMES
        if line.startswith(name + " ")
    }
    assert told.keys() == set(NAMES), answer.stdout + answer.stderr
    broken = frozenset(name for name, verdict in told.items() if verdict == "BROKEN")
    assert (answer.returncode != 0) == bool(broken)
    sections = re.split(rf"^({'|'.join(map(re.escape, NAMES))})\n-+\n", details, flags=re.MULTILINE)
    return Verdict(broken, dict(zip(sections[1::2], sections[2::2], strict=True)))


def copy_tree(folder: Path) -> Path:
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return copy_tree(tmp_path)


def plant(tree: Path, module: str, line: str = "") -> None:
    """Add a line to a module; it and the packages around it are made if they do not exist yet."""
    *packages, _ = module.split(".")
    for depth in range(1, len(packages) + 1):
        package = tree.joinpath("src", *packages[:depth])
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
    folder = tree.joinpath("src", *module.split("."))
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    with file.open("a") as text:
        text.write(f"\n{line}\n")


def test_the_real_tree_keeps_all_contracts() -> None:
    assert lint(ROOT).broken == set()


PLANTED = [
    pytest.param("situ.lang.expr.planted", "import situ.project.check", RINGS, id="core-imports-surface"),
    pytest.param("situ.lang.expr.planted", "import situ.spark.session", RINGS, id="core-imports-engine"),
    pytest.param("situ.bus.file_log", "import situ.app.run", RINGS, id="engine-imports-surface"),
    pytest.param("situ.spark.dispatch", "import situ.edge.engine", RINGS, id="spark-imports-edge"),
    pytest.param("situ.edge.engine", "import situ.spark.session", RINGS, id="edge-imports-spark"),
    pytest.param("situ.router.router", "import situ.edge.engine", RINGS, id="router-imports-edge"),
    pytest.param("situ.client.client", "import situ.router.router", RINGS, id="client-imports-router"),
    pytest.param("situ.registry.store", "import situ.spark.session", RINGS, id="registry-imports-spark"),
    pytest.param("situ.stages.plan", "import situ.bus.interface", RINGS, id="stage-imports-bus"),
    pytest.param("situ.project.check", "import situ.explain.policy", RINGS, id="project-imports-explanations"),
    pytest.param("situ.explain.policy", "import situ.app.replay", RINGS, id="explanation-imports-app"),
    pytest.param("situ.policies.plan", "import situ.scopes.graph", RINGS, id="sideways-between-parts"),
    pytest.param(
        "situ.routing.filter_index", "import situ.quality.shaping.shaper", RINGS, id="sideways-between-other-parts"
    ),
    pytest.param("situ.scopes.graph", "import situ.protocol.router_machine", RINGS, id="part-imports-protocol"),
    pytest.param("situ.quality.match.pools", "import situ.model", RINGS, id="part-imports-model"),
    pytest.param("situ.model.deployment", "import situ.stages.plan", RINGS, id="model-imports-stage"),
    pytest.param("situ.lang.expr.planted", "import situ.routing.filter", RINGS, id="language-imports-part"),
    pytest.param("situ.lang.documents.nodes", "import situ.event.row", RINGS, id="language-imports-events"),
    pytest.param("situ.lang.problems", "import situ.lang.catalogue", LANGUAGE, id="problems-know-no-codes"),
    pytest.param("situ.lang.types.model", "import situ.lang.expr.tree", LANGUAGE, id="types-know-no-expressions"),
    pytest.param(
        "situ.protocol.router_machine", "import situ.contexts.table", PROTOCOL, id="protocol-imports-contexts"
    ),
    pytest.param("situ.protocol.router_machine", "import situ.policies.plan", PROTOCOL, id="protocol-imports-policies"),
    pytest.param("situ.lang.units", "import pyspark", SPARK, id="spark-in-core"),
    pytest.param("situ.bus.file_log", "from pyspark.sql import Row", SPARK, id="spark-in-another-engine"),
    pytest.param("situ.cli.planted", "def late():\n    import pyspark.sql", SPARK, id="spark-in-a-function"),
    pytest.param("situ.lang.expr.planted", "from pint import Unit", PINT, id="pint-outside-units"),
    pytest.param("situ.lang.types.planted", "import socket", PURE, id="network-in-core"),
    pytest.param("situ.lang.problems", "from time import monotonic", PURE, id="clock-in-core"),
    pytest.param("situ.protocol.router_machine", "import asyncio", PURE, id="event-loop-in-core"),
    pytest.param("situ.quality.match.pools", "import random", PURE, id="chance-in-core"),
    pytest.param("situ.lang.expr.planted", "import urllib.request", PURE, id="submodule-in-core"),
]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    """What the linter says when all of these are there at once."""
    tree = copy_tree(tmp_path_factory.mktemp("planted"))
    for importer, line, *_ in (each.values for each in PLANTED):
        if line.startswith("import situ."):
            plant(tree, line.removeprefix("import "))
        plant(tree, importer, line)
    return lint(tree)


@pytest.mark.parametrize(("importer", "line", "contract"), PLANTED)
def test_a_planted_import_is_found(planted: Verdict, importer: str, line: str, contract: str) -> None:
    (imported,) = re.findall(r"(?:from|import) ([\w.]+)(?: import .*)?$", line)
    if not imported.startswith("situ."):
        imported = imported.partition(".")[0]
    assert re.search(rf"- +{re.escape(importer)} -> {re.escape(imported)} ", planted.found[contract])


@pytest.mark.parametrize(
    ("module", "contract"),
    [pytest.param("situ.surprise", RINGS, id="anywhere"), pytest.param("situ.lang.surprise", LANGUAGE, id="language")],
)
def test_a_module_without_a_place_is_found(tree: Path, module: str, contract: str) -> None:
    plant(tree, module)
    assert lint(tree).broken == {contract}


def test_rooms_behind_a_front_door_are_found_of_every_package(tree: Path) -> None:
    """All at once: an import of one room of each package, from the top of the tree, breaks each of these contracts."""
    for contract in DOORS:
        room = contract["protected_modules"][-1]
        plant(tree, "situ.cli.planted" if room != "situ.cli" else "situ.control.planted", f"import {room}")
    assert lint(tree).broken == {contract["name"] for contract in DOORS}


def test_no_room_is_named_as_a_door() -> None:
    """What a package's docstring offers to others can be imported by them."""
    rooms = {room for contract in DOORS for room in contract["protected_modules"]} - {"situ.cli"}
    offered = {
        f"situ.{door.parent.name}.{name}"
        for door in SOURCE.glob("*/__init__.py")
        for name in re.findall(r"`([\w.]+)`", door.read_text().partition("Front door:")[2])
    }
    assert "situ.router.router.Router" in offered
    assert {name for name in offered if any(f"{name}.".startswith(f"{room}.") for room in rooms)} == set()


def test_what_the_rings_allow_is_not_found(tree: Path) -> None:
    for imported in ("routing.filter_index", "scopes.graph", "quality.shaping.shaper", "project.check"):
        plant(tree, f"situ.{imported}", "import situ.lang.problems")
    for part in ("routing.filter_index", "scopes.graph", "quality.shaping.shaper", "settings"):
        plant(tree, "situ.protocol.planted", f"import situ.{part}")
    plant(tree, "situ.stages.planted", "import situ.protocol.router_machine, situ.contexts.table, situ.policies.plan")
    plant(tree, "situ.registry.store", "import sqlite3, situ.model, situ.stages.plan")
    plant(tree, "situ.spark.planted", "import time, pyspark.sql, situ.registry.store, situ.spark.dispatch")
    for engine in ("client", "router", "edge"):
        plant(tree, f"situ.{engine}.planted", "import asyncio, situ.registry.store, situ.bus.interface")
    plant(tree, "situ.explain.planted", "import time, situ.project.check, situ.edge.engine")
    plant(tree, "situ.app.planted", "import situ.explain.policy, situ.router.router, situ.edge.engine")
    plant(tree, "situ.cli.planted", "import situ.project.check, situ.spark.planted, situ.app.planted")
    assert lint(tree).broken == set()


# ── what an import check cannot see ───────────────────────────────────────────────────────────────

OUTSIDE_THE_CORE = {rule.split()[0].split(".")[1] for rule in CONTRACTS[NAMES.index(PURE)]["ignore_imports"]}
IMPURE_CALLS = {"open", "print", "input", "datetime.now", "datetime.today", "datetime.utcnow", "date.today"}
_LAST_WORDS = {name.rpartition(".")[2] for name in IMPURE_CALLS}


def impure_calls(source: str) -> list[str]:
    """Calls that reach the file system, the terminal or the clock without an import that says so."""
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    # Only few end like one of them: to write out every call takes longer than all the rest.
    alike = [each for each in calls if getattr(each, "attr", getattr(each, "id", "")) in _LAST_WORDS]
    names = (".".join(ast.unparse(each).split(".")[-2:]) for each in alike)
    return [name for name in names if name in IMPURE_CALLS]


def core_modules() -> list[Path]:
    return [file for file in sorted(SOURCE.rglob("*.py")) if file.relative_to(SOURCE).parts[0] not in OUTSIDE_THE_CORE]


def test_the_core_calls_neither_files_nor_terminal_nor_clock() -> None:
    modules = core_modules()
    assert SOURCE / "lang" / "problems.py" in modules
    assert SOURCE / "stages" / "interpret.py" in modules
    assert {str(file): found for file in modules if (found := impure_calls(file.read_text()))} == {}


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ("with open('x') as f: pass", ["open"]),
        ("print('here')", ["print"]),
        ("import datetime\nx = datetime.datetime.now(datetime.UTC)", ["datetime.now"]),
        ("def f():\n    return date.today()", ["date.today"]),
        ("gate.open()\nreopen()\nnow()", []),
    ],
)
def test_a_planted_call_is_found(planted: str, found: list[str]) -> None:
    assert impure_calls(planted) == found


@pytest.mark.parametrize("module", ["situ", "situ.cli.main"])
def test_importing_situ_does_not_load_spark(module: str) -> None:
    program = f"import sys, {module}; print(*sorted({{'pyspark', 'py4j', 'pandas'}} & sys.modules.keys()))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (answer.returncode, answer.stdout.strip(), answer.stderr) == (0, "", "")


def test_workers_of_spark_load_no_databases() -> None:
    """Each of them would, before its first batch."""
    loaded = "import sys, situ.spark.partitions, situ.spark.detect"
    program = f"{loaded}; print(*({{'sqlalchemy', 'alembic'}} & sys.modules.keys()))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""
