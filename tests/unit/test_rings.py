"""The rings hold: on the real tree, and the check finds every kind of violation planted in a copy of it."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "situ"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]

RINGS, OVERLAY, SPARK, PINT, PURE = (contract["name"] for contract in CONTRACTS)


def broken_contracts(tree: Path) -> set[str]:
    """The names of the contracts that do not hold in the ``src`` folder of ``tree``."""
    answer = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--config", tree / "pyproject.toml"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    verdicts = {name: verdict for name in (RINGS, OVERLAY, SPARK, PINT, PURE) for verdict in verdicts_on(name, answer)}
    assert verdicts.keys() == {RINGS, OVERLAY, SPARK, PINT, PURE}, answer.stdout + answer.stderr
    broken = {name for name, verdict in verdicts.items() if verdict == "BROKEN"}
    assert (answer.returncode != 0) == bool(broken)
    return broken


def verdicts_on(contract: str, answer: subprocess.CompletedProcess[str]) -> Iterator[str]:
    for line in answer.stdout.splitlines():
        if line.startswith(contract + " "):
            yield line.removeprefix(contract).split()[0]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


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
    assert broken_contracts(ROOT) == set()


@pytest.mark.parametrize(
    ("importer", "imported", "contract"),
    [
        pytest.param("situ.lang.units", "situ.project.read", RINGS, id="core-imports-surface"),
        pytest.param("situ.expr.planted", "situ.spark.session", RINGS, id="core-imports-engine"),
        pytest.param("situ.bus.file_log", "situ.cli.main", RINGS, id="engine-imports-surface"),
        pytest.param("situ.spark.dispatch", "situ.stages.plan", RINGS, id="pipeline-imports-edge"),
        pytest.param("situ.stages.plan", "situ.spark.dispatch", RINGS, id="edge-imports-pipeline"),
        pytest.param("situ.registry.store", "situ.spark.dispatch", RINGS, id="registry-imports-pipeline"),
        pytest.param("situ.policies.plan", "situ.scopes.graph", RINGS, id="sideways-between-parts"),
        pytest.param("situ.routing.index", "situ.quality.match.pools", RINGS, id="sideways-between-other-parts"),
        pytest.param("situ.scopes.graph", "situ.protocol.router_machine", RINGS, id="part-imports-overlay"),
        pytest.param("situ.quality.match.pools", "situ.model", RINGS, id="part-imports-deployment"),
        pytest.param("situ.types.planted", "situ.routing.index", RINGS, id="foundation-imports-part"),
        pytest.param("situ.lang.problems", "situ.lang.catalogue", RINGS, id="errors-know-no-codes"),
        pytest.param(
            "situ.protocol.router_machine", "situ.interpretation.plan", OVERLAY, id="overlay-imports-interpretation"
        ),
        pytest.param("situ.protocol.router_machine", "situ.policies.plan", OVERLAY, id="overlay-imports-situation"),
    ],
)
def test_a_planted_import_of_ours_is_found(tree: Path, importer: str, imported: str, contract: str) -> None:
    plant(tree, imported)
    plant(tree, importer, f"import {imported}")
    assert broken_contracts(tree) == {contract}


@pytest.mark.parametrize(
    ("importer", "line", "contract"),
    [
        pytest.param("situ.lang.units", "import pyspark", SPARK, id="spark-in-core"),
        pytest.param("situ.bus.file_log", "from pyspark.sql import Row", SPARK, id="spark-in-another-engine"),
        pytest.param("situ.cli.planted", "def late():\n    import pyspark.sql", SPARK, id="spark-in-a-function"),
        pytest.param("situ.expr.planted", "from pint import Unit", PINT, id="pint-outside-units"),
        pytest.param("situ.types.planted", "import socket", PURE, id="network-in-core"),
        pytest.param("situ.lang.problems", "from time import monotonic", PURE, id="clock-in-core"),
        pytest.param("situ.protocol.router_machine", "import asyncio", PURE, id="event-loop-in-core"),
        pytest.param("situ.quality.match.pools", "import random", PURE, id="chance-in-core"),
        pytest.param("situ.expr.planted", "import urllib.request", PURE, id="submodule-in-core"),
        pytest.param("situ.surprise", "", RINGS, id="module-without-a-place"),
    ],
)
def test_a_planted_foreign_import_is_found(tree: Path, importer: str, line: str, contract: str) -> None:
    plant(tree, importer, line)
    assert broken_contracts(tree) == {contract}


def test_what_the_rings_allow_is_not_found(tree: Path) -> None:
    for imported in ("situ.routing.index", "situ.scopes.graph", "situ.quality.match.pools", "situ.project.read"):
        plant(tree, imported, "import situ.lang.problems")
    for part in ("subscription.index", "visibility.graph", "quality.skyline"):
        plant(tree, "situ.protocol.router_machine", f"import situ.{part}")
    plant(tree, "situ.model", "import situ.protocol.router_machine")
    plant(tree, "situ.registry.store", "import sqlite3, situ.model")
    plant(tree, "situ.spark.planted", "import time, pyspark.sql, situ.registry.store")
    plant(tree, "situ.edge.planted", "import asyncio, situ.registry.store")
    plant(tree, "situ.cli.planted", "import situ.project.read, situ.spark.planted")
    assert broken_contracts(tree) == set()


# ── what an import check cannot see ───────────────────────────────────────────────────────────────

OUTSIDE_THE_CORE = {rule.split()[0].split(".")[1] for rule in CONTRACTS[-1]["ignore_imports"]}
IMPURE_CALLS = {"open", "print", "input", "datetime.now", "datetime.today", "datetime.utcnow", "date.today"}


def impure_calls(source: str) -> list[str]:
    """Calls that reach the file system, the terminal or the clock without an import that says so."""
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    names = (
        ".".join(ast.unparse(call).split(".")[-2:]) for call in calls if isinstance(call, ast.Name | ast.Attribute)
    )
    return [name for name in names if name in IMPURE_CALLS]


def core_modules() -> list[Path]:
    return [file for file in sorted(SOURCE.rglob("*.py")) if file.relative_to(SOURCE).parts[0] not in OUTSIDE_THE_CORE]


def test_the_core_calls_neither_files_nor_terminal_nor_clock() -> None:
    modules = core_modules()
    assert SOURCE / "errors.py" in modules
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
