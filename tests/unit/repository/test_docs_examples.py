"""The examples of the documentation are found and compared as the pages mean them."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.reference.examples import Aside, Command, File, Runner, agrees, steps

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

```console title="Terminal 2"
$ situ subscribe Reading
Waiting
```

```console title="Terminal 2"
one event
```
"""


def test_files_and_commands_are_found_in_order() -> None:
    assert list(steps(PAGE)) == [
        File("types/a.yaml", "# types/a.yaml\nversion: 1\n"),
        File("b.json", "{}\n"),
        Command("situ check", "one\n\ntwo"),
        Command("cat > c <<'END'\n> quoted\nEND", ""),
        Aside("Terminal 2", "situ subscribe Reading", "Waiting"),
        Aside("Terminal 2", "", "one event"),
    ]


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ("one\ntwo", "one\ntwo\n"),
        ("one", "one   \n\n"),
        ("2 files · 0.4 s", "2 files · 12.3 s\n"),
        ("08:30:00.000 Reading", "23:59:01.517 Reading\n"),
        ("stored as s.1793520000000.1", "stored as s.1794742483901.1\n"),
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
        ("stored as s.1793520000000.1", "stored as s.1794742483901.2\n"),
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


def test_a_command_goes_on_in_another_terminal_and_is_heard_as_it_speaks(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    loop = "bash -c 'echo ready; until [ -e go ]; do sleep 0.1; done; echo gone; exec sleep 60'"
    try:
        assert runner.beside(Aside("T", loop, "ready")) == "ready\n"
        assert runner.run(Command("touch go", "")) == (0, "")
        assert runner.beside(Aside("T", "", "gone")) == "gone\n"
    finally:
        runner.close()


def test_a_command_in_another_terminal_that_ends_too_early_is_seen(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    assert runner.beside(Aside("T", "echo wrong", "right")) == "wrong\n"
    runner.close()
