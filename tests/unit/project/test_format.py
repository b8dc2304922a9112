"""The canonical form of files: tidied, never changed in what they say, and tidy only once."""

from __future__ import annotations

import random
from pathlib import Path
from textwrap import dedent

import pytest

from situ.lang.documents import parse_yaml, to_data
from situ.project.check import check_folder
from situ.project.create import example_folder
from situ.project.format import format_folder, format_text
from tests.project_files import MINIMAL, write

ATTACKS = Path(__file__).parents[2] / "attacks" / "yaml"
KINDS = (
    "situ.yaml",
    "types/a.yaml",
    "functions/a.yaml",
    "sources/a.yaml",
    "contexts/a.yaml",
    "clients/a.yaml",
    "quality/a.yaml",
)


def formatted(text: str, file: str) -> str:
    """The canonical form, which must be its own canonical form."""
    result = format_text(text, file)
    assert format_text(result, file) == result
    return result


def lines(text: str, file: str) -> list[str]:
    return formatted(dedent(text), file).splitlines()


# ── blanks ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: a", "name: a\n"),
        ("name: a   \n", "name: a\n"),
        ("name: a\t# why\n", "name: a # why\n"),
        ("name:\ta\n", "name: a\n"),
        ("name: a      # aligned   \n", "name: a      # aligned\n"),
        ("name: a\r\nzone: b\r\n", "name: a\nzone: b\n"),
        ("name: a\rzone: b", "name: a\nzone: b\n"),
        ("\ufeffname: a\n", "name: a\n"),
        ("name: a\n\n\n\n", "name: a\n"),
        ("\n\nname: a\n\n\nzone: b\n", "\n\nname: a\n\n\nzone: b\n"),
        ("name: a\n   \n# end  \n", "name: a\n\n# end\n"),
        ("log: {age:\t7 d,\tsize: 1 GiB}\n", "log: {age: 7 d, size: 1 GiB}\n"),
        ("# tab\tin a comment\nname: 'a\tb'\n", "# tab\tin a comment\nname: 'a\tb'\n"),
        ("name: |\n  kept   \n  \n  text\n\n\n", "name: |\n  kept   \n  \n  text\n"),
        ("name: |+\n  kept\n\n\n", "name: |+\n  kept\n\n\n"),
        ("name: 'two   \n  lines'   \n", "name: 'two   \n  lines'\n"),
        ("name: 'a # b'   # c\n", "name: 'a # b'   # c\n"),
        ("# only a comment  \n", "# only a comment\n"),
        ("", ""),
        ("\n", "\n"),
    ],
)
def test_blanks(text: str, expected: str) -> None:
    assert formatted(text, "situ.yaml") == expected


@pytest.mark.parametrize(
    "text", ["a: [1", "\tb: 1\n", "a: 1\na: 2  \n", "a: *b  \n", "%YAML 1.1\n---\na: 1  \n", "a: \x00"]
)
def test_what_is_not_right_as_yaml_stays_as_it_is(text: str) -> None:
    assert formatted(text, "situ.yaml") == text


def test_files_of_no_kind_stay_as_they_are() -> None:
    assert formatted("name: a   \n", "other.yaml") == "name: a   \n"


# ── spellings ─────────────────────────────────────────────────────────────────────────────────────


def test_types() -> None:
    assert lines(
        """
        types:
          Position( Base,Other ):   # comment
            x: double  m            # stays
            y: optional   double   km / h
            list: "optional  [ Line ]"
            amount: 'decimal( 18 , 2 )  EUR'
            plain: [Line]
            long: {type: "[ Line ]", unit: m ^ 2, optional: true}
          Flow: {a: double  m, b: "string"}
          "Quoted (Base)": {}
        events:
          E: {wrong: [a, b], other: 5, optional: optional}
        """,
        "types/a.yaml",
    ) == [
        "",
        "types:",
        "  Position(Base, Other):   # comment",
        "    x: double m            # stays",
        "    y: optional double km/h",
        '    list: "optional [Line]"',
        "    amount: 'decimal(18,2) EUR'",
        "    plain: [Line]",
        '    long: {type: "[Line]", unit: m^2, optional: true}',
        '  Flow: {a: double m, b: "string"}',
        '  "Quoted(Base)": {}',
        "events:",
        "  E: {wrong: [a, b], other: 5, optional: optional}",
    ]


def test_sources() -> None:
    assert lines(
        """
        pull:
          rates: {sql: "select  a,b from t", url: "${DB}", columns: {a: optional  double  km / h, b: {type: "[ int ]"}}}
          faulty: {columns: 5}
        """,
        "sources/a.yaml",
    ) == [
        "",
        "pull:",
        '  rates: {sql: "select  a,b from t", url: "${DB}", columns: {a: optional double km/h, b: {type: "[int]"}}}',
        "  faulty: {columns: 5}",
    ]


def test_functions() -> None:
    assert lines(
        """
        functions:
          near: "( a:Point m,b: Point  m )->boolean=distance(a,b)<=5 m and not(a.x>1)"
          yards: double  m->double yd=value*1.09
          long: {signature: "double m->double yd", expr: "value*1.09"}
          block: |
            double   m -> double m = value
          lines: double m -> double yd = value
            *   1.09
          wrong: "(a: ) -> boolean =  a"
          broken: "(a: double) -> boolean =  a >"
        """,
        "functions/a.yaml",
    ) == [
        "",
        "functions:",
        '  near: "(a: Point m, b: Point m) -> boolean = distance(a, b) <= 5 m AND NOT (a.x > 1)"',
        "  yards: double m -> double yd = value * 1.09",
        '  long: {signature: "double m -> double yd", expr: "value * 1.09"}',
        "  block: |",
        "    double   m -> double m = value",
        "  lines: double m -> double yd = value",
        "    *   1.09",
        '  wrong: "(a: ) -> boolean =  a"',
        '  broken: "(a: double) -> boolean =  a >"',
    ]


def test_clients() -> None:
    assert lines(
        """
        clients:
          desk:
            subscriptions:
              one: {types: [A], where: "at.x<5 m and name like 'a%'"}
              two: {types: [A], where: 'name=''it''''s''  OR x in(1,2)'}
              escaped: {types: [A], where: "name=\\"a\\""}
              env: {types: [A], where: "x  > ${LIMIT}"}
              plain: {types: [A], where: x>1}
              spaced: {types: [A], where: x  =  1}
        """,
        "clients/a.yaml",
    )[4:] == [
        "      one: {types: [A], where: \"at.x < 5 m AND name LIKE 'a%'\"}",
        "      two: {types: [A], where: 'name = ''it''''s'' OR x IN (1, 2)'}",
        '      escaped: {types: [A], where: "name=\\"a\\""}',
        '      env: {types: [A], where: "x  > ${LIMIT}"}',
        "      plain: {types: [A], where: x > 1}",
        "      spaced: {types: [A], where: x = 1}",
    ]


def test_a_spelling_that_needs_quotes_is_not_given_without() -> None:
    """``[a]: b`` and the like: what is plain text today might be something else in its new spelling."""
    text = "functions:\n  f: (a:double)->boolean=a>1\n  g: (a:double,b:double)->boolean=a>1\n"
    new = formatted(text, "functions/a.yaml")
    assert new == text, "`a: double` would be a mapping: both lines stay"
    mixed = text + '  h: "(a:double)->boolean=a>1"\n'
    assert formatted(mixed, "functions/a.yaml") == text + '  h: "(a: double) -> boolean = a > 1"\n'


def test_types_and_functions_of_contexts_are_spelled_as_elsewhere() -> None:
    text = """\
        context: us
        types: {"A( B,C )": {x: 'double   m'}}
        rules: {out: [A -> f]}
        functions:
          f: double  m->double yd =value*1.09
          g: {signature: string->string, lookup: {l: {source: s, key: {a: value}}}, value: l . b, key: event . source}
        """
    assert lines(text, "contexts/a.yaml") == [
        "context: us",
        "types: {\"A(B, C)\": {x: 'double m'}}",
        "rules: {out: [A -> f]}",
        "functions:",
        "  f: double m -> double yd = value * 1.09",
        "  g: {signature: string -> string, lookup: {l: {source: s, key: {a: value}}}, value: l.b, key: event.source}",
    ]


def test_what_a_file_says_is_what_it_said() -> None:
    """Blanks thrown in at random: the canonical form does not depend on them, nor does the meaning."""
    source = example_folder()
    dice = random.Random(7)
    for file in (
        "types/building.yaml",
        "functions/building.yaml",
        "sources/building.yaml",
        "contexts/us.yaml",
        "clients/people.yaml",
    ):
        text = (source / file).read_text()
        assert formatted(text, file) == text, "the example is in canonical form"
        for _ in range(20):
            messy = "".join(
                line + dice.choice(["", " ", "\t", "   "]) + dice.choice(["\n", "\r\n"]) for line in text.splitlines()
            )
            messy = messy.replace(" AND ", dice.choice([" and ", "  AND ", " And "]))
            assert formatted(messy, file) == text


@pytest.mark.parametrize("file", KINDS)
def test_any_text_is_formatted_or_left_alone(file: str) -> None:
    tried = 0
    for attack in sorted(ATTACKS.glob("*.yaml")):
        try:
            text = attack.read_bytes().decode()
        except UnicodeDecodeError:
            continue
        tried += 1
        before, after = parse_yaml(text, file), parse_yaml(formatted(text, file), file)
        assert (after.root is None) == (before.root is None)
        if before.root is not None and after.root is not None and not before.problems:
            assert to_data(after.root) == to_data(before.root)
    assert tried > 50


# ── folders ───────────────────────────────────────────────────────────────────────────────────────


def test_only_files_that_change_are_written(tmp_path: Path) -> None:
    write(
        tmp_path,
        {**MINIMAL, "types/a.yaml": "types: {A: {x: double  m}}\n", "types/b.yaml": b"\xff", "note.yaml": "a:  1  \n"},
    )
    before = (tmp_path / "situ.yaml").stat().st_mtime_ns
    (tmp_path / "types" / "a.yaml").chmod(0o640)
    assert format_folder(tmp_path, write=False) == ("types/a.yaml",)
    assert (tmp_path / "types" / "a.yaml").read_text() == "types: {A: {x: double  m}}\n"
    assert format_folder(tmp_path, write=True) == ("types/a.yaml",)
    assert (tmp_path / "types" / "a.yaml").read_text() == "types: {A: {x: double m}}\n"
    assert (tmp_path / "types" / "a.yaml").stat().st_mode & 0o777 == 0o640
    assert format_folder(tmp_path, write=True) == ()
    assert (tmp_path / "situ.yaml").stat().st_mtime_ns == before
    assert sorted(path.name for path in tmp_path.rglob("*.yaml*")) == ["a.yaml", "b.yaml", "note.yaml", "situ.yaml"]


def test_a_file_outside_is_not_touched(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"a.yaml": "types: {A: {x: double  m}}\n"}) / "a.yaml"
    project = write(tmp_path / "project", {**MINIMAL, "types/b.yaml": ""})
    (project / "types" / "a.yaml").symlink_to(outside)
    assert format_folder(project, write=True) == ()
    assert outside.read_text() == "types: {A: {x: double  m}}\n"


def test_formatting_does_not_change_the_deployment(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            **MINIMAL,
            "types/a.yaml": "events: {A: {x: double  m, y: optional  int}}   \n",
            "functions/f.yaml": 'functions: {f: "(x:double m)->boolean=x>1 m"}',
            "clients/c.yaml": "clients: {c: {subscriptions: {s: {types: [A], where: 'f(x)and y=1'}}}}",
        },
    )
    before = check_folder(tmp_path, {}).deployment
    assert len(format_folder(tmp_path, write=True)) == 3
    after = check_folder(tmp_path, {}).deployment
    assert before is not None
    assert before == after


def test_policies_are_brought_into_their_form(tmp_path: Path) -> None:
    untidy = "concepts\n person A (status='guest') # who\nconditions\n A IS awake A\nactions\n log 'a'\n"
    broken = "concepts\n  person\n"
    write(tmp_path, {**MINIMAL, "policies/a.dpl": untidy, "policies/b.dpl": broken, "policies/c.txt": untidy})
    assert format_folder(tmp_path, write=True) == ("policies/a.dpl",)
    assert (tmp_path / "policies" / "a.dpl").read_text() == (
        "concepts\n  person A (status = 'guest')  # who\nconditions\n  A is awake A\nactions\n  log 'a'\n"
    )
    assert (tmp_path / "policies" / "b.dpl").read_text() == broken


def test_costs_of_quality_have_one_spelling() -> None:
    text = (
        "profiles:\n"
        "  - {publisher: p, type: T, capabilities: {rate: {cv: 1, ub: 2, cost: 0.1*x}}}\n"
        "actions: [{property: rate, direction: down, action: thin, cost: 'case when x>1 then 1 else 0 end'}]\n"
    )
    tidy = text.replace("0.1*x", "0.1 * x").replace(
        "case when x>1 then 1 else 0 end", "CASE WHEN x > 1 THEN 1 ELSE 0 END"
    )
    assert formatted(text, "quality/a.yaml") == tidy
