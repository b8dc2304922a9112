"""Where the minutes of a test run go, by folder and by file.

    .venv/bin/python scripts/test_minutes.py [REPORT]

REPORT is what `pytest --junitxml` wrote; without it, that of the last `make test`. Times are those of the clock, added
up over the processes that share the tests: two processes have two minutes in each. With `-p scripts.test_cpu` the
report has seconds of CPU as well, which are those that count on a busy machine; then they are added up instead.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
_REPORT = ROOT / ".pytest_cache" / "tests.xml"
_FILES = 60


def minutes(report: Path) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Seconds by folder and by file, and tests by folder."""
    folders: Counter[str] = Counter()
    files: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        parts = case.get("classname", "").split(".")
        file = next((index for index, part in enumerate(parts) if part.startswith("test_")), len(parts) - 1)
        folder = "/".join(parts[:2])
        seconds = _seconds(case)
        folders[folder] += seconds
        files["/".join(parts[: file + 1]) + ".py"] += seconds
        tests[folder] += 1
    return folders, files, tests


def _seconds(case: ElementTree.Element) -> float:
    cpu = case.find("properties/property[@name='cpu']")
    return float(case.get("time", 0) if cpu is None else cpu.get("value", 0))


def main() -> int:
    report = Path(sys.argv[1]) if len(sys.argv) > 1 else _REPORT
    if not report.is_file():
        print(f"There is no {report}: run `make test` first.", file=sys.stderr)
        return 1
    folders, files, tests = minutes(report)
    print("| folder | tests | minutes |\n| --- | ---: | ---: |")
    for folder, seconds in folders.most_common():
        print(f"| `{folder}` | {tests[folder]:,} | {seconds / 60:.1f} |")
    print(f"| all | {tests.total():,} | {folders.total() / 60:.1f} |")
    print("\n| file | seconds |\n| --- | ---: |")
    for file, seconds in files.most_common(_FILES):
        print(f"| `{file}` | {seconds:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
