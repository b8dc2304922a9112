"""The examples of the documentation are found and compared as the pages mean them."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.reference.examples import Command, File, Runner, agrees, steps

PAGE = """\
Some text.

```yaml
# types/a.yaml
version: 1
```

```json title="b.json"
{}
```

```yaml
no: file
```

```sh
not executed
```

```console
$ situ check
one

two
$ cat > c <<'END'
> > quoted
> END
```
"""


def test_files_and_commands_are_found_in_order() -> None:
    assert list(steps(PAGE)) == [
        File("types/a.yaml", "# types/a.yaml\nversion: 1\n"),
        File("b.json", "{}\n"),
        Command("situ check", "one\n\ntwo"),
        Command("cat > c <<'END'\n> quoted\nEND", ""),
    ]


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ("one\ntwo", "one\ntwo\n"),
        ("one", "one   \n\n"),
        ("2 files · 0.4 s", "2 files · 12.3 s\n"),
        ("one\n…\nfour", "one\ntwo\nthree\nfour\n"),
        ("one\n…", "one\n"),
        ("one\n…", "one\ntwo\n"),
    ],
)
def test_outputs_that_agree(shown: str, found: str) -> None:
    assert agrees(shown, found)


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ("one", "two\n"),
        ("one", "one\ntwo\n"),
        ("one\ntwo", "one\n"),
        ("2 files · 0.4 s", "3 files · 0.4 s\n"),
        ("one\n…\nfour", "one\ntwo\nfive\n"),
        ("a.c", "abc\n"),
        ("  indented", "indented\n"),
    ],
)
def test_outputs_that_do_not_agree(shown: str, found: str) -> None:
    assert not agrees(shown, found)


def test_commands_share_a_folder_and_say_how_they_ended(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    runner.write(File("inner/file", "text\n"))
    assert runner.run(Command("cd inner", "")) == (0, "")
    assert runner.run(Command("cat file; echo wrong >&2; false", "")) == (1, "text\nwrong\n")
