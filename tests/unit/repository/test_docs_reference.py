"""The reference is complete, and what it shows is right. That it is current: see ``tests/e2e/test_docs.py``."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from situ.lang.catalogue import CODES
from situ.lang.expr.functions.table import FORMS, FUNCTIONS
from situ.project.check import check_folder
from situ.project.folder import FILES, FOLDERS

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
_LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
_SECTION = re.compile(r"^## [^`\n]*`([^`]+)`.*?^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    return (DOCS / "reference" / name).read_text()


def test_codes_are_documented() -> None:
    headings = set(re.findall(r"^### .*$", page("errors.md"), re.MULTILINE))
    expected = {f'### <a id="{code.code}"></a>{code.code}: {code.title}' for code in CODES.values()}
    assert sorted(expected - headings) == []


def test_functions_and_forms_are_documented() -> None:
    text = page("functions.md").replace("&#124;", "|")
    missing = [name for name in FUNCTIONS if not re.search(rf"^### .*[`>]{re.escape(name)}[`<]", text, re.MULTILINE)]
    assert missing == []
    assert [form for form, _, doc in FORMS if f"| {doc} |" not in text] == []


def test_examples_of_files_make_a_project(tmp_path: Path) -> None:
    """The examples on the page of files, one of each kind, put together are a project without errors."""
    examples = dict(_SECTION.findall(page("files.md")))
    assert examples.keys() == {*FILES, *(f"{folder}/*.yaml" for folder in FOLDERS)}
    for name, text in examples.items():
        path = tmp_path / name.replace("*", "example")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    checked = check_folder(tmp_path, {"PEOPLE_DB": "sqlite:///people.db"})
    assert [str(problem) for problem in checked.errors] == []


@pytest.mark.parametrize(
    "name",
    [
        *("README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
        *(path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("examples/*/README.md"))),
    ],
)
def test_links_of_pages_outside_the_site_lead_somewhere(name: str) -> None:
    """Those inside are checked when the site is built."""
    links = _LINK.findall((ROOT / name).read_text())
    assert [link for link in links if not (ROOT / name).parent.joinpath(link).exists()] == []


def test_every_decision_is_listed() -> None:
    folder = DOCS / "internals" / "decisions"
    records = sorted(path.name for path in folder.glob("0*.md"))
    titles = {name: (folder / name).read_text().split("\n")[0] for name in records}
    assert [title[2:6] for title in titles.values()] == [name[:4] for name in records]
    assert len({name[:4] for name in records}) == len(records)
    listed = (folder / "index.md").read_text()
    assert [name for name, title in titles.items() if f"| [{name[:4]}]({name}) | {title[7:]} |" not in listed] == []


def test_every_page_is_in_the_navigation_once() -> None:
    """mkdocs refuses a page that nobody can reach; this says so without building the site."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    hidden = set(settings["exclude_docs"].split())
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - hidden
    listed = list(_listed(settings["nav"]))
    assert sorted(listed) == sorted(pages)


def _listed(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, list):
        for each in nav:
            yield from _listed(each)
    elif isinstance(nav, dict):
        for each in nav.values():
            yield from _listed(each)


def test_make_check_builds_the_documentation() -> None:
    told = subprocess.run(["make", "-n", "check"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "mkdocs build --strict" in told
    assert "generate_docs.py --check" in told
