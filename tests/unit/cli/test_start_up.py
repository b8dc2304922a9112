"""What commands load before they answer, and what they say of the time that took.

Nothing here measures time: what is not loaded takes none.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from lark import Lark
from lark.exceptions import UnexpectedInput

from situ.cli.app import COMMANDS
from situ.policies.language import grammar_table
from situ.policies.language.parse import _grammar, build_grammar, grammar_key

EXAMPLE = Path(__file__).parents[3] / "examples" / "smart-building"

_LOADED = """
import json, sys
from situ.cli.main import main
try:
    code = main(sys.argv[1:])
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""

_DATACLASSES = """
import dataclasses, json, sys
from situ.cli.main import main

def is_plain(cls):
    if "__dataclass_fields__" not in vars(cls) or "__post_init__" in vars(cls):
        return False
    marks = [(each.compare, each.repr, each.init, each.hash, dict(each.metadata)) for each in dataclasses.fields(cls)]
    return all(each == (True, True, True, None, {}) for each in marks)

code = main(sys.argv[1:])
ours = [each for name, each in sys.modules.items() if name.startswith("situ.")]
found = {each for module in ours for each in vars(module).values() if isinstance(each, type) and is_plain(each)}
print(json.dumps(sorted(f"{each.__module__}.{each.__qualname__}" for each in found)), file=sys.stderr)
sys.exit(code)
"""

STILL_DATACLASSES = {
    # loaded to say what commands there are, when nothing else needs msgspec
    "situ.lang.problems.Code",
    "situ.lang.problems.Location",
    # with a hash, an equality, a memory or a pickled form of their own
    "situ.lang.documents.nodes.SourceText",
    "situ.lang.types.model.Struct",
    "situ.policies.check.interactions._Thing",
    "situ.policies.ontology.model.Ontology",
    "situ.policies.plan.Leaf",
    "situ.scopes.filter_sets.FilterSets",
    "situ.stages.interpret.Interpretation",
    # with a JSON form of their own, by which they are told from structs that have none
    "situ.lang.tags.TagSet",
    "situ.lang.tags.WrittenTags",
    "situ.policies.model.PolicyStart",
    "situ.routing.model.Advertisement",
    "situ.routing.model.ClientDeclaration",
    "situ.routing.model.Subscription",
    # beside others in a family that is not all plain
    "situ.contexts.xml_form.XmlDocument",
    "situ.lang.documents.nodes.Document",
    "situ.lang.expr.definitions.DefinedFunction",
    "situ.lang.expr.scope.Definition",
    "situ.scopes.graph.ScopeLink",
}

HEAVY = {"alembic", "numpy", "pandas", "pint", "pyarrow", "pydantic", "pyspark", "sqlalchemy"}
LANGUAGES = {"lark", "sqlglot", "yaml"}
PARTS = {"situ.contexts", "situ.policies", "situ.quality", "situ.routing", "situ.scopes"}
OWN = PARTS | {
    "situ.app",
    "situ.bus",
    "situ.explain",
    "situ.lang.documents",
    "situ.lang.expr",
    "situ.model",
    "situ.project",
    "situ.registry",
    "situ.stages",
}
RUNNING = {"situ.edge", "situ.explain", "situ.routing.routing_table", "situ.spark", "situ.stages.detect"}


def loaded_by(*arguments: str, code: int = 0) -> set[str]:
    """The modules that a process has at the end of a command, which ends with this code."""
    done = subprocess.run([sys.executable, "-c", _LOADED, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr.splitlines()[:-1]
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("command", ["--version", "--help"])
def test_help_and_version_load_nothing_but_the_command_line(command: str) -> None:
    loaded = loaded_by(command)
    assert not loaded & (HEAVY | LANGUAGES | OWN | {"rich", "asyncio", "nats", "msgspec"})
    others = {each for each in loaded if each.startswith("situ.cli.")}
    modules = {place.partition(":")[0] for place, _ in COMMANDS.values()}
    assert not others & modules, "no command is loaded to say what commands there are"


def test_the_modules_of_commands_load_nothing_before_they_are_called() -> None:
    modules = sorted({place.partition(":")[0] for place, _ in COMMANDS.values()})
    program = f"import json, sys, {', '.join(modules)}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    loaded = set(json.loads(done.stdout))
    assert loaded >= set(modules)
    assert not loaded & (HEAVY | LANGUAGES | OWN | {"rich", "asyncio", "nats"})


@pytest.mark.parametrize("name", sorted(OWN | RUNNING | {"situ.lang.types.model"}))
def test_what_must_not_be_loaded_is_called_so(name: str) -> None:
    """A name that nothing has any more would be found nowhere, and guard nothing."""
    found = find_spec(name)
    assert found is not None
    assert found.origin is not None


def test_check_loads_what_declarations_mean_and_nothing_that_runs_them() -> None:
    loaded = loaded_by("check", "--project", str(EXAMPLE))
    assert "situ.project.check" in loaded
    assert not loaded & HEAVY
    assert not loaded & (RUNNING | {"asyncio", "nats"})


def test_what_check_loads_are_structs_where_a_struct_does() -> None:
    """To make a dataclass takes Python half a millisecond, a struct a fiftieth of that."""
    arguments = [sys.executable, "-c", _DATACLASSES, "check", "--project", str(EXAMPLE)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stderr.splitlines()[-1])) <= STILL_DATACLASSES


def test_status_loads_neither_declarations_nor_the_database(tmp_path: Path) -> None:
    (tmp_path / "situ.yaml").write_text("version: 1\nname: idle\n")
    loaded = loaded_by("status", "--project", str(tmp_path), code=1)
    assert "situ.project.status" in loaded
    assert not loaded & (HEAVY | PARTS | {"lark", "sqlglot", "nats", "situ.model", "situ.stages", "situ.explain"})


def test_a_run_loads_pandas_only_if_it_makes_columns() -> None:
    """Arrow asks for it then. The driver of Spark makes none, nor does an edge without policies."""
    program = "import json, sys, situ.app.run, situ.spark.engine; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    loaded = set(json.loads(done.stdout))
    assert {"pyarrow", "pyspark"} <= loaded
    assert "pandas" not in loaded


def test_the_client_library_loads_neither_declarations_nor_types() -> None:
    program = "import json, sys, situ; situ.connect, situ.Client; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    loaded = set(json.loads(done.stdout))
    assert "situ.client.client" in loaded
    assert not loaded & (HEAVY | LANGUAGES | {"situ.contexts", "situ.lang.types.model", "situ.model", "situ.policies"})


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_the_commands_say(name: str) -> None:
    place, summary = COMMANDS[name]
    module, _, attribute = place.partition(":")
    found = getattr(import_module(module), attribute)
    text = inspect.getdoc(found) if inspect.isfunction(found) else found.info.help
    assert inspect.cleandoc(text).split("\n\n")[0].replace("\n", " ") == summary


def test_a_value_of_an_option_that_is_wrong_is_still_refused() -> None:
    for arguments in (["run", "--engine", "steam"], ["dead-letters", "list", "--limit", "many"]):
        done = subprocess.run(
            [sys.executable, "-m", "situ", *arguments], capture_output=True, text=True, cwd=EXAMPLE, timeout=300
        )
        assert done.returncode == 2, done.stderr
        assert f"'{arguments[-2]}'" in done.stderr


def test_the_table_of_the_grammar_was_made_of_the_grammar() -> None:
    assert grammar_key() == grammar_table.KEY, "run scripts/generate_grammar.py"
    built = build_grammar()
    for text in (
        "A is inside R",
        "A.x > 5 m and not B or (C within 2 m of D)",
        "A followed-by within 3 s B is not on C",
    ):
        assert _tree(_grammar(), text) == _tree(built, text)


def _tree(grammar: Lark, text: str) -> object:
    try:
        return grammar.parse(text, start="condition")
    except UnexpectedInput as error:
        return (type(error), error.pos_in_stream)


def test_the_time_that_is_shown_is_counted_from_the_start_of_the_process() -> None:
    program = (
        "import time; time.sleep(0.3)\n"
        "from situ.cli.progress import seconds_since_start\n"
        "print(seconds_since_start(), flush=True)"
    )
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    waited = time.monotonic() - begun
    tick = 0.02
    assert 0.3 - tick < float(done.stdout) < waited + tick
