"""What the documentation tells its reader to do works, and says what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.reference.examples import Aside, Command, File, Runner, agrees, steps
from tests.e2e.conftest import Situ

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if "```console" in path.read_text()
)


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_say_what_it_shows(situ: Situ, page: str, tmp_path: Path) -> None:
    runner = Runner(tmp_path, programs=situ.programs)
    try:
        for step in steps((ROOT / page).read_text()):
            match step:
                case File():
                    runner.write(step)
                case Aside(terminal=terminal, text=text, output=shown):
                    found = runner.beside(step)
                    assert agrees(shown, found), f"{terminal}: $ {text}\n{found}"
                case Command(text=text, output=shown):
                    code, found = runner.run(step)
                    assert code in (0, 1, 3), f"$ {text}\n{found}"
                    assert shown or code == 0, f"$ {text}\n{found}"
                    assert not shown or agrees(shown, found), f"$ {text}\n{found}"
    finally:
        runner.close()


def test_the_pages_that_must_run_are_among_them() -> None:
    assert {"README.md", "docs/quickstart.md"} <= set(PAGES)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/index.md", "docs/quickstart.md"])
def test_make_targets_that_a_page_names_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = (ROOT / page).read_text()
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    named = set(re.findall(r"`make ([a-z]+)", text)) | set(re.findall(r"^make ([a-z]+)", blocks, re.MULTILINE))
    assert named
    assert named <= targets


def test_generated_pages_are_current() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "generate_docs.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
