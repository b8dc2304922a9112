"""What every command has in common: help, version, wrong usage, streams, signals, how fast it starts."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import situ as package
from situ.cli.app import COMMANDS
from tests.e2e.conftest import SITU, Situ
from tests.e2e.forks import LOADED
from tests.e2e.runs import in_terminal

# Loaded only by the commands that need them: they take longer than everything else together.
HEAVY = {"numpy", "pint", "pyarrow", "pydantic", "pyspark", "rich", "sqlglot", "yaml"}


def test_version_goes_to_standard_output(situ: Situ) -> None:
    ran = situ.fresh("--version")
    assert (ran.code, ran.out, ran.err) == (0, f"situ {package.__version__}\n", "")


@pytest.mark.parametrize("command", [[sys.executable, "-m", "situ"], [str(Path(sys.executable).with_name("situ"))]])
def test_it_is_installed_as_a_command_and_as_a_module(command: list[str]) -> None:
    ran = subprocess.run([*command, "--version"], env=Situ.environment(), capture_output=True, text=True, check=True)
    assert ran.stdout == f"situ {package.__version__}\n"


def test_alone_it_shows_its_help(situ: Situ) -> None:
    ran = situ()
    assert ran.code == 0
    assert ran == situ("--help")
    assert all(f"\n  {command} " in ran.out for command in COMMANDS)
    assert "Examples:\n" in ran.out


@pytest.mark.parametrize("group", ["types", "explain", "dead-letters"])
def test_a_group_alone_shows_its_help(situ: Situ, group: str) -> None:
    ran = situ(group)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"Usage: situ {group} ")


@pytest.mark.parametrize(
    "command",
    [
        *("init", "check", "diff", "fmt", "schemas", "types import", "types export"),
        *("explain types", "explain expression", "explain subscription", "explain event"),
        *("explain context", "explain transform", "transform"),
        *("run", "status", "publish", "subscribe", "replay"),
        *("dead-letters list", "dead-letters show", "dead-letters retry"),
    ],
)
def test_every_command_has_help_with_examples_and_the_common_options(situ: Situ, command: str) -> None:
    ran = situ(*command.split(), "--help")
    assert ran.code == 0
    assert f"  situ {command}" in ran.out.partition("Examples:")[2]
    assert "--json" in ran.out
    assert "--quiet" in ran.out
    assert ("--project" in ran.out) == (command not in ("init", "types import"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chekc"], "No such command 'chekc'. Did you mean 'check'?"),
        (["explain", "typs"], "Did you mean 'types'?"),
        (["check", "--jsn"], "No such option: --jsn"),
        (["--json", "check"], "Options stand behind the command, as in `situ check --json`."),
        (["explain", "expression"], "Missing argument 'TEXT'."),
        (["check", "here"], "unexpected extra argument"),
        (["types", "export", "--format", "xml"], "'xml' is not one of 'json-schema', 'spark', 'arrow'"),
    ],
)
def test_wrong_usage_is_told_on_standard_error_and_ends_with_2(situ: Situ, arguments: list[str], said: str) -> None:
    ran = situ(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "--help`" in ran.err


@pytest.mark.parametrize("arguments", ["check --project", "explain transform --why", "client add --out"])
def test_an_option_without_its_value_names_the_help_of_its_command(situ: Situ, arguments: str) -> None:
    command, _, _ = arguments.partition(" --")
    assert f"Try `situ {command} --help`." in situ(*arguments.split()).err


@pytest.mark.parametrize("command", ["check", "status", "run", "situations", "test", "fmt", "explain types"])
def test_a_folder_where_none_is_taken_is_told_to_be_named_by_an_option(
    situ: Situ, tmp_path: Path, command: str
) -> None:
    ran = situ(*command.split(), str(situ.example), cwd=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert f"`situ {command} --project {situ.example}`" in ran.err


def test_a_folder_is_told_of_only_where_one_can_be_named_and_is_not(situ: Situ) -> None:
    assert "`situ check --project here`" in situ("check", "here").err
    assert "--project" not in situ("explain", "policy", "one", "another").err
    assert "an option" not in situ("check", "--project", str(situ.example), "here").err


def test_help_and_version_load_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from situ.cli.main import main\n"
        "assert main(['--version']) == 0 and main(['--help']) == 0\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert HEAVY & set(ran.stdout.splitlines()[-1].split()) == set()


def test_whatever_a_command_loads_can_be_loaded_first() -> None:
    """Most tests have everything loaded, and would not notice a module that only works behind another one."""
    script = (
        "import importlib, os, sys\n"
        "import alembic.command, lark, nats, pint, rich.console, sqlalchemy, sqlglot, typer, yaml\n"
        "assert not [name for name in sys.modules if name.startswith('situ')]\n"
        "for name in sys.argv[1:]:\n"
        "    if not (child := os.fork()):\n"
        "        os._exit(importlib.import_module(name) is None)\n"
        "    if os.waitpid(child, 0)[1]:\n"
        "        print(name)\n"
    )
    names = {*LOADED, *(place.partition(":")[0] for place, _ in COMMANDS.values())}
    command = [sys.executable, "-c", script, *sorted(name for name in names if name.startswith("situ."))]
    ran = subprocess.run(command, env=Situ.environment(), capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("", "")


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_help_and_version_come_at_once(option: str) -> None:
    """Processor time, so that a busy machine does not count; the best of a few, so that cold files do not."""

    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*SITU, option], env=Situ.environment(), stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(3)) < 0.3


def complete(situ: Situ, words: str, cwd: Path) -> list[str]:
    """What a shell would offer for the last of these words."""
    asking = {"_SITU_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    ran = situ(cwd=cwd, env=asking)
    assert (ran.code, ran.err) == (0, "")
    return ran.out.split()


def test_shells_complete_commands_types_and_codes(situ: Situ, tmp_path: Path) -> None:
    assert complete(situ, "situ ch", tmp_path) == ["check"]
    assert complete(situ, "situ explain code X10", tmp_path)[0] == "X101"
    assert complete(situ, "situ explain types Ro", situ.example) == ["RoomClimate", "RoomEvent", "RoomId"]
    assert complete(situ, "situ explain types Ro", tmp_path) == [], "no project, no complaint"


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    script = "import os, sys; os.rmdir(os.getcwd()); from situ.cli.main import main; sys.exit(main(['check']))"
    gone = tmp_path / "gone"
    gone.mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=gone, env=Situ.environment(), capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(".:1:1: error P123: This file cannot be read: the current folder is gone.\n")


# ── streams ───────────────────────────────────────────────────────────────────────────────────────


def test_a_reader_that_has_had_enough_is_no_error(situ: Situ, broken_project: Path) -> None:
    """The exit code is that of the command: here, that there are errors."""
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.Popen(
        [*SITU, "check"], cwd=broken_project, env=situ.environment(), stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, b"")


def test_a_pipe_into_head_shows_one_line(situ: Situ) -> None:
    command = f"{' '.join(SITU)} explain types --project {situ.example} | head -n 1"
    ran = subprocess.run(["sh", "-c", command], env=situ.environment(), capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("Events\n", "")


def test_output_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        ran = subprocess.run(
            [*SITU, "explain", "code", "X101"],
            env=Situ.environment({"PYTHONDONTWRITEBYTECODE": "1"}),
            stdout=out,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
            check=False,
        )
    assert ran.returncode == 3
    assert ran.stderr == b"situ: output: File too large\n"


def test_closed_streams_do_no_harm() -> None:
    command = f"{' '.join(SITU)} explain code X101 >&- 2>&-"
    ran = subprocess.run(["sh", "-c", command], env=Situ.environment(), check=False)
    assert ran.returncode == 0


C_LOCALES = (
    {"LC_ALL": "C"},
    {"LC_ALL": "POSIX"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
)


@pytest.mark.parametrize("env", C_LOCALES, ids=["C", "POSIX", "C, and Python takes its word for it"])
def test_the_c_locale_gets_utf8(situ: Situ, env: dict[str, str]) -> None:
    ran = situ.fresh("explain", "expression", "facility/comfort", "--project", situ.example, env=env)
    assert ran.code == 0
    assert "temperature NOT BETWEEN 19 °C AND 24 °C" in ran.out
    assert "├── temperature  double degC\n" in ran.out


def test_an_encoding_that_was_asked_for_is_kept_and_json_stays_json(situ: Situ) -> None:
    arguments = ("explain", "expression", "temperature < 5 °C", "--type", "RoomClimate", "--project", situ.example)
    shown = situ.fresh(*arguments, env={"PYTHONIOENCODING": "ascii"}, encoding="ascii")
    assert shown.code == 0
    assert r"temperature < 5 \xb0C" in shown.out
    data = situ.fresh(*arguments, "--json", env={"PYTHONIOENCODING": "ascii"}, encoding="ascii").data
    assert data["text"] == "temperature < 5 °C"


def test_bytes_that_are_no_text_do_no_harm(situ: Situ) -> None:
    name = os.fsdecode(b"caf\xe9\x1b[31m.json")
    ran = situ.fresh("types", "import", name)
    assert ran.code == 2
    assert r"caf\udce9\x1b[31m.json" in ran.err
    assert situ.fresh("types", "import", name, "--json").data["problems"][0]["file"] == name


def test_colour_in_a_terminal_only_and_not_where_it_is_unwanted(situ: Situ, broken_project: Path) -> None:
    command = ("check", "--project", str(broken_project))
    code, coloured = in_terminal(*command)
    assert code == 1
    assert "\x1b[1;31merror INT105:" in coloured
    _, uncoloured = in_terminal(*command, env={"NO_COLOR": "1"})
    assert "error INT105:" in uncoloured
    assert "[31m" not in uncoloured
    assert ";31m" not in uncoloured
    assert "\x1b" not in situ(*command).out


# ── Ctrl-C ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("after", [0.0, 0.1, 0.3, 1.0])
def test_ctrl_c_ends_with_130_and_no_word(situ: Situ, after: float) -> None:
    """Whatever is going on: imports, reading, waiting for input. 0 would tell a script that it has its answer."""
    script = (
        "import sys\nfrom situ.cli.main import main\nprint('ready', flush=True)\n"
        f"sys.exit(main(['explain', 'expression', '1', '--project', {str(situ.example)!r}, '--event', '-']))"
    )
    command = [sys.executable, "-c", script]
    process = subprocess.Popen(
        command, env=situ.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.01 + after)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")
