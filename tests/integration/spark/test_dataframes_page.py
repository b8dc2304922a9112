"""The page for users of Spark: what its examples show is what they do."""

from __future__ import annotations

import doctest
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "howto" / "use-dataframes.md").read_text()
FACES = [
    ("camera-1", "face-c86da", 10.0, 5.0),
    ("camera-1", "face-7ad65", 12.0, 8.0),
    ("camera-9", "face-c86da", 10.0, 5.0),
]


def faces() -> str:
    lines = [
        {
            "specversion": "1.0",
            "id": f"f{number}",
            "source": camera.replace("9", "1"),
            "type": "FaceSeen",
            "time": f"2026-11-01T08:30:{number - 1:02d}Z",
            "data": {"camera": camera, "face": face, "polar": {"r": r, "theta": theta}},
        }
        for number, (camera, face, r, theta) in enumerate(FACES, 1)
    ]
    return "".join(f"{json.dumps(line)}\n" for line in lines) + "and this is no event\n"


def test_examples_of_the_page(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from situ.spark import Project

    shutil.copytree(ROOT / "examples" / "smart-building", tmp_path / "plant")
    (tmp_path / "faces.jsonl").write_text(faces())
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming" / "1.jsonl").write_text(faces())
    monkeypatch.chdir(tmp_path)
    # Spark's own working folder is where its Java was started.
    spark = spark.newSession()
    page = re.sub(r'"(faces\.jsonl|archive|incoming|sightings|checkpoint)"', rf'"{tmp_path}/\1"', PAGE)
    blocks = "\n".join(re.findall(r"^```pycon\n(>>> .*?)^```$", page, re.MULTILINE | re.DOTALL))
    test = doctest.DocTestParser().get_doctest(blocks, {"spark": spark}, "page", None, None)
    assert len(test.examples) > 20
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append, clear_globs=False)
    assert not runner.failures, "".join(said)
    # The example of the reference stands in the same folder.
    doc = (Project.__doc__ or "").replace("faces.jsonl", f"{tmp_path}/faces.jsonl")
    runner.run(doctest.DocTestParser().get_doctest(doc, test.globs, "Project", None, None), out=said.append)
    assert not runner.failures, "".join(said)


def test_the_codes_that_the_page_names_exist() -> None:
    from situ.lang.catalogue import CODES

    assert set(re.findall(r"\b[NE]\d{3}\b", PAGE)) <= CODES.keys()
