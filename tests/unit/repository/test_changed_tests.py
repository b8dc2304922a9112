"""What ``make test-changed`` runs: everything that a change can reach, by imports and by names in strings."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.changed_tests import reached_tests

FILES = {
    "src/situ/__init__.py": "",
    "src/situ/low.py": "",
    "src/situ/middle.py": "def late():\n    from situ.low import thing",
    "src/situ/cli/__init__.py": "",
    "src/situ/cli/main.py": "import situ.middle",
    "src/situ/other.py": "",
    "tests/conftest.py": "",
    "tests/program.py": 'COMMAND = ["python", "-m", "situ.cli.main"]',
    "tests/unit/test_low.py": "import situ.low",
    "tests/unit/test_middle.py": "from situ import middle",
    "tests/unit/test_other.py": "from situ.other import thing",
    "tests/e2e/test_command.py": "from tests.program import COMMAND",
    "tests/unit/test_pages.py": 'PAGES = ROOT / "docs"',
    "tests/golden/test_forms.py": 'KEPT = HERE / "forms"',
    "tests/golden/forms/one.json": "{}",
    "docs/index.md": "",
    "pyproject.toml": "",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("changed", "reached"),
    [
        ("src/situ/low.py", {"unit/test_low", "unit/test_middle", "e2e/test_command"}),
        ("src/situ/middle.py", {"unit/test_middle", "e2e/test_command"}),
        ("src/situ/other.py", {"unit/test_other"}),
        ("tests/program.py", {"e2e/test_command"}),
        ("tests/unit/test_other.py", {"unit/test_other"}),
        ("docs/index.md", {"unit/test_pages"}),
        ("docs/gone.md", {"unit/test_pages"}),
        ("tests/golden/forms/one.json", {"golden/test_forms"}),
        ("CHANGELOG.md", set()),
    ],
)
def test_what_leads_to_a_change_is_run(root: Path, changed: str, reached: set[str]) -> None:
    assert set(reached_tests([changed], root)) == {f"tests/{name}.py" for name in reached}


def test_what_decides_about_all_tests_runs_all(root: Path) -> None:
    every = {name for name in FILES if "/test_" in name}
    for changed in ("pyproject.toml", "tests/conftest.py", "requirements/all.lock"):
        assert set(reached_tests([changed], root)) == every
