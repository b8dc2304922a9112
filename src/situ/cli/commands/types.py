"""``situ types``: from and to the schemas of others."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import CommandError, Exit
from situ.cli.groups import group
from situ.cli.options import common_options

if TYPE_CHECKING:
    from situ.cli.output import Output
    from situ.lang.types.model import Struct
    from situ.lang.types.table import Types

app = group("types", "Exchange types with JSON Schema, Spark and Arrow.")

_NO_LETTER = re.compile(r"[^A-Za-z0-9]+")
Overwrite = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


class SchemaFormat(StrEnum):
    """What types are exported as."""

    JSON_SCHEMA = "json-schema"
    SPARK = "spark"
    ARROW = "arrow"


@app.command("import")
@common_options
def import_types(
    output: Output,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A JSON Schema, draft 7 to 2020-12; - is standard input.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write, as in types/orders.yaml.", show_default=False),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="Name of the event type, if the schema has no title.", show_default=False)
    ] = "",
    force: Overwrite = False,
) -> Exit:
    """Make types of a JSON Schema.

    What types cannot express is reported with its place. Without --out the types are shown.

    \b
    Examples:
      situ types import order.json
      situ types import order.json --out types/orders.yaml
    """
    from situ.cli.arguments import read_file, write_new
    from situ.lang.documents import parse_json
    from situ.lang.problems import Problems
    from situ.lang.types.declaration import print_types
    from situ.lang.types.json_schema import import_schema

    problems = Problems()
    imported = import_schema(parse_json(read_file(file), file), name or type_name(file), problems)
    problems.raise_errors()
    text = print_types(imported)
    if out is not None:
        write_new(out, text, overwrite=force)
    if output.json:
        found = [problem.as_json() for problem in problems.sorted()]
        output.data({"types": imported.as_json(), "text": text, "file": str(out) if out else None, "problems": found})
        return Exit.DONE
    output.warn(problems.sorted())
    if out is None:
        output.text(text)
    else:
        output.note(f"Wrote {len(imported.declared)} types to {out}. Now run `situ check`.")
    return Exit.DONE


@app.command("export")
@common_options
def export_types(
    output: Output,
    project: Path | None,
    name: Annotated[str, typer.Argument(metavar="TYPE", help="One type instead of all.", show_default=False)] = "",
    format: Annotated[SchemaFormat, typer.Option("--format", help="The format.")] = SchemaFormat.JSON_SCHEMA,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write.", show_default=False)
    ] = None,
    force: Overwrite = False,
) -> Exit:
    """Write types as JSON Schema, Spark columns or Arrow schemas.

    For Spark and Arrow, without TYPE, there is one schema for each event type.

    \b
    Examples:
      situ types export > types.schema.json
      situ types export Sighting --format spark
    """
    from situ.cli.arguments import write_new
    from situ.cli.project import open_project

    types = open_project(project).deployment.types
    chosen = _struct(name, types) if name else None
    text, data = _exported(types, chosen, format)
    if out is not None:
        write_new(out, text, overwrite=force)
        output.note(f"Wrote {out}.")
    elif output.json:
        output.data(data)
    else:
        output.text(text)
    return Exit.DONE


def _struct(name: str, types: Types) -> Struct:
    from situ.lang.catalogue import UNKNOWN_TYPE, WRONG_KIND
    from situ.lang.problems import nearest
    from situ.lang.types.model import Struct

    found = types.get(name)
    if found is None:
        raise CommandError(Exit.NO, UNKNOWN_TYPE(name=name, nearest=nearest(name, types.names)))
    if not isinstance(found, Struct):
        remedy = "Leave TYPE out to export all types, this one among them."
        raise CommandError(Exit.USAGE, WRONG_KIND(expected="a struct", found=f"the primitive `{name}`", remedy=remedy))
    return found


def _exported(types: Types, chosen: Struct | None, format: SchemaFormat) -> tuple[str, Any]:
    """As text and as data."""
    if format is SchemaFormat.JSON_SCHEMA:
        from situ.lang.types.json_schema import export_event, export_types

        schema = export_types(types) if chosen is None else export_event(types, chosen)
        return json.dumps(schema, indent=2, ensure_ascii=False) + "\n", schema
    events = [event for event in map(types.event, sorted(types.events)) if event is not None]
    schemas = {struct.name: _columns(struct, types, format) for struct in ([chosen] if chosen else events)}
    if chosen is not None:
        return schemas[chosen.name] + "\n", schemas
    return "\n".join(f"-- {name}\n{schema}\n" for name, schema in schemas.items()), schemas


def _columns(struct: Struct, types: Types, format: SchemaFormat) -> str:
    if format is SchemaFormat.SPARK:
        from situ.lang.types.layout import spark_schema

        return spark_schema(struct, types)
    from situ.lang.types.arrow_schema import arrow_schema

    text: str = arrow_schema(struct, types).to_string(truncate_metadata=False)
    return text


def type_name(file: str) -> str:
    """``order-line.schema.json`` → ``OrderLine``: a name for what a file describes."""
    stem = Path(file).name.split(".")[0]
    words = [word for word in _NO_LETTER.split(stem) if word]
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if name[:1].isalpha() else f"Imported{name}"
