"""A transformation over columns instead of values: for engines that know no subtypes.

There a struct that has subtypes is one with a column ``$type`` and all their attributes, as
:mod:`situ.lang.types.layout` lays them out, and that of one side need not look like that of the other. This module
makes of a transformation one whose result has the columns of the target type, each of exactly the type it has there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal as OneOf

from situ.contexts.function_bodies import DATA
from situ.contexts.model import MissingValue, TableLookup
from situ.contexts.transform.function_calls import ExternalValue
from situ.contexts.transform.transformation import Transformation
from situ.lang.expr.checker.coerce import NOTHING_THERE, nothing_there
from situ.lang.expr.emit.spark import Reader, SparkExpression, emit_spark, read_column
from situ.lang.expr.scope import NameScope, substitute
from situ.lang.expr.tree import (
    FALSE,
    TRUE,
    Apply,
    Case,
    Coalesce,
    Each,
    Field,
    ForEach,
    IsNull,
    Literal,
    MakeStruct,
    Node,
    Read,
    rebuild,
    walk,
)
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.lang.types.json_codec import TYPE_KEY
from situ.lang.types.layout import Column, columns
from situ.lang.types.model import (
    BOOLEAN,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Attribute,
    ListOf,
    Struct,
    Type,
    is_subtype,
    plain,
)
from situ.lang.types.table import Types


def in_columns(transformation: Transformation) -> Node:
    """The expression over a column ``data`` of the source's layout that gives a struct of the target's."""
    return _builder(transformation).written(transformation.node, transformation.target)


def spark_expression(transformation: Transformation, reader: Reader) -> SparkExpression | None:
    """The transformation as Spark SQL; None if it needs more than the event, or is more than Spark can take.

    Rows that it looks up are read from columns of :func:`spark_joins`.
    """
    if spark_joins(transformation, reader) is None:
        return None
    try:
        return emit_spark(in_columns(transformation), reader)
    except SituError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJoin:
    """A row that a transformation looks up, as a join: a column named ``variable`` with the row, null where there is
    none."""

    variable: str
    lookup: TableLookup
    keys: Mapping[str, str]
    """Column of the table → Spark SQL of the value it must have."""


def spark_joins(transformation: Transformation, reader: Reader) -> Sequence[TableJoin] | None:
    """The rows that it looks up; None if it needs what no join gives: a row for each element of a list, the last row
    before an instant, a row to wait for, something remembered, or a function of Python."""
    waiting, found = dict(transformation.externals), list[TableJoin]()
    while waiting:
        # A row may be found by a value of another.
        ready = [each for each in waiting.values() if not waiting.keys() & _variables(node for _, node in each.keys)]
        for each in ready:
            join = _join(transformation, each, reader)
            if join is None:
                return None
            found.append(join)
            del waiting[each.variable]
        if not ready:
            return None
    return found


def _variables(nodes: Iterable[Node]) -> set[str]:
    return {part.variable for node in nodes for part in walk(node) if isinstance(part, Read)}


def _join(transformation: Transformation, external: ExternalValue, reader: Reader) -> TableJoin | None:
    lookup = external.of
    waits = external.function.missing is MissingValue.HOLD
    if not isinstance(lookup, TableLookup) or lookup.as_of or external.in_list or waits:
        return None
    keys: dict[str, str] = {}
    for column, node in external.keys:
        attribute = lookup.row.attribute(column)
        if attribute is None or plain(attribute.type) not in _JOINED:
            return None
        try:
            made = emit_spark(_builder(transformation).read(node), reader)
        except SituError:
            return None
        if made.fails and external.function.missing is not MissingValue.ERROR:
            return None  # the event fails, and not only the look-up
        keys[column] = f"CASE WHEN NOT {made.fails} THEN {made.value} END" if made.fails else made.value
    return TableJoin(variable=external.variable, lookup=lookup, keys=keys)


def _builder(transformation: Transformation) -> _ColumnBuilder:
    made = _ColumnBuilder(types=transformation.types, targets=transformation.targets)
    made.variables[DATA] = transformation.source
    for name, each in transformation.externals.items():
        if isinstance(each.of, TableLookup):
            made.variables[name] = each.of.row
    return made


_JOINED = (STRING, INT, LONG, BOOLEAN, DATE, TIMESTAMP)
"""What Spark finds equal where Python does."""


def dataframe_form(transformation: Transformation) -> OneOf["catalyst", "arrow", "none"]:
    """How DataFrames run it: by expressions of Spark, by Python over Arrow arrays, or not at all."""
    if transformation.execution == "stateful":
        return "none"
    return "catalyst" if spark_expression(transformation, read_column) is not None else "arrow"


def condition_in_columns(condition: Node, source: Struct, types: Types) -> Node:
    """A condition on events of a type, over a column ``data`` of its layout."""
    made = _ColumnBuilder(types=types, targets=types)
    made.variables[DATA] = source
    return made.read(condition)


@dataclass(slots=True, kw_only=True)
class _ColumnBuilder:
    types: Types
    targets: Types
    variables: dict[str, Type] = field(default_factory=dict)
    """What is declared where a variable of the source comes from: the columns it has are that type's."""

    def layout(self, type: Type, types: Types) -> Type:
        """The type as its columns make it: structs without subtypes, which have them all."""
        bare = plain(type)
        match bare:
            case ListOf(element=element):
                return ListOf(self.layout(element, types))
            case Struct():
                return Struct("", tuple(self._as_attribute(each, types) for each in columns(bare, types)))
            case _:
                return bare

    def _as_attribute(self, column: Column, types: Types) -> Attribute:
        return Attribute(name=column.name, type=self.layout(column.type, types), optional=True)

    # ── what is written ──

    def written(self, node: Node, declared: Type) -> Node:
        """A part of the result, in the place of a value that is declared so."""
        wanted = self.layout(declared, self.targets)
        match node:
            case Literal(value=None):
                return Literal(None, wanted)
            case Apply(overload=overload) if overload is NOTHING_THERE:
                return replace(nothing_there(declared, self.targets), type=wanted)
            case Case(arms=arms, otherwise=otherwise):
                chosen = tuple((self.read(condition), self.written(result, declared)) for condition, result in arms)
                return replace(node, arms=chosen, otherwise=self.written(otherwise, declared), type=wanted)
            case Coalesce(args=args):
                return replace(node, args=tuple(self.written(each, declared) for each in args), type=wanted)
            case MakeStruct():
                return self._struct(node, declared)
            case ForEach(kind=Each.TRANSFORM, list=items, variable=variable, body=body):
                return self._elements(node, items, variable, body, declared)
            case ForEach(kind=Each.FILTER, list=ForEach(kind=Each.TRANSFORM) as made, variable=variable, body=body):
                # What is left out is decided before the rest is laid out: the condition asks for values, not columns.
                asked = substitute(body, {variable: made.body}, NameScope())
                kept = replace(node, list=made.list, variable=made.variable, body=asked, type=made.list.type)
                return self.written(replace(made, list=kept), declared)
        if not isinstance(plain(declared), Struct | ListOf):
            return self.read(node)
        return self._relaid(self.read(node), self._declared_of(node), declared)

    def _struct(self, node: MakeStruct, declared: Type) -> Node:
        target = plain(declared)
        assert isinstance(target, Struct)
        given = dict(node.fields)
        fields: list[tuple[str, Node]] = []
        for column in columns(target, self.targets):
            attribute = node.type.attribute(column.attribute)
            if column.name == TYPE_KEY:
                part: Node = given.get(TYPE_KEY, Literal(None, STRING))
            elif attribute is not None and column.attribute in given and _holds(column, attribute):
                part = self.written(given[column.attribute], column.type)
            else:
                part = Literal(None, self.layout(column.type, self.targets))
            fields.append((column.name, part))
        return MakeStruct(tuple(fields), _struct_of(self.layout(target, self.targets)))

    def _elements(self, node: ForEach, items: Node, variable: str, body: Node, declared: Type) -> Node:
        of, target = plain(self._declared_of(items)), plain(declared)
        assert isinstance(of, ListOf)
        assert isinstance(target, ListOf)
        self.variables[variable] = of.element
        made = self.written(body, target.element)
        return replace(node, list=self.read(items), body=made, type=self.layout(declared, self.targets))

    def _relaid(self, node: Node, given: Type, declared: Type) -> Node:
        """A value that is passed on: column by column, if both sides do not have the same ones."""
        wanted = self.layout(declared, self.targets)
        if self.layout(given, self.types) == wanted:
            return replace(node, type=wanted) if isinstance(node, Read | Field) else node
        bare, target = plain(given), plain(declared)
        if isinstance(bare, ListOf) and isinstance(target, ListOf):
            variable = f"laid{node.depth}_{len(self.variables)}"
            self.variables[variable] = bare.element
            item = Read(variable, (), bare.element, optional=(True,))
            body = self._relaid(item, bare.element, target.element)
            return ForEach(Each.TRANSFORM, node, variable, body, wanted)
        if not isinstance(bare, Struct) or not isinstance(target, Struct):
            return node
        known = {column.name: column for column in columns(bare, self.types)}
        fields: list[tuple[str, Node]] = []
        for column in columns(target, self.targets):
            source = known.get(column.name)
            if source is None:
                fields.append((column.name, Literal(None, self.layout(column.type, self.targets))))
            else:
                fields.append((column.name, self._relaid(_column_of(node, source), source.type, column.type)))
        made = MakeStruct(tuple(fields), _struct_of(wanted))
        return Case(((IsNull(node), Literal(None, wanted)),), made, wanted)

    # ── what is read ──

    def read(self, node: Node) -> Node:
        """A part that is computed: its attributes are read from the columns that hold them."""
        if isinstance(node, Read) and node.variable in self.variables:
            return replace(node, path=tuple(self._path(node)[0]))
        if isinstance(node, IsNull) and isinstance(node.arg, Case):
            return self.read(_is_null(node.arg))
        if _makes_structs(node):
            # Looked at further, not passed on: what is chosen from has the columns that those read have.
            return replace(self, targets=self.types).written(node, self._declared_of(node))
        if isinstance(node, ForEach):
            of = plain(self._declared_of(node.list))
            if isinstance(of, ListOf):
                self.variables.setdefault(node.variable, of.element)
        return rebuild(node, self.read)

    def _declared_of(self, node: Node) -> Type:
        if isinstance(node, ForEach) and node.kind is Each.FILTER:
            return self._declared_of(node.list)
        return self._path(node)[1] if isinstance(node, Read) and node.variable in self.variables else node.type

    def _path(self, node: Read) -> tuple[list[str], Type]:
        """The columns on the way, and what is declared at its end."""
        declared, path = self.variables[node.variable], list[str]()
        for number, step in enumerate(node.path, 1):
            struct = plain(declared)
            assert isinstance(struct, Struct)
            same = [column for column in columns(struct, self.types) if column.attribute == step]
            last = number == len(node.path)
            fitting = (column for column in same if not last or is_subtype(node.type, column.type))
            column = next(fitting, same[0] if same else Column(name=step, attribute=step, type=STRING))
            path.append(column.name)
            declared = column.type
        return path, declared


def _is_null(node: Node) -> Node:
    """Whether a value is null, without making it: values that are chosen from need not have the same columns."""
    match node:
        case Literal():
            return TRUE if node.value is None else FALSE
        case MakeStruct():
            return FALSE
        case Case(arms=arms, otherwise=otherwise):
            chosen = tuple((condition, _is_null(result)) for condition, result in arms)
            return Case(chosen, _is_null(otherwise), BOOLEAN)
        case _:
            return IsNull(node)


def _makes_structs(node: Node) -> bool:
    """Whether structs are made or chosen here that need one layout."""
    match node:
        case ForEach(kind=Each.FILTER, list=made):
            return isinstance(made, ForEach) and made.kind is Each.TRANSFORM and _makes_structs(made)
        case ForEach(kind=Each.TRANSFORM) | Case() | Coalesce():
            return isinstance(_innermost(node.type), Struct)
        case _:
            return False


def _innermost(type: Type) -> Type:
    bare = plain(type)
    return _innermost(bare.element) if isinstance(bare, ListOf) else bare


def _holds(column: Column, attribute: Attribute) -> bool:
    return column.unit == attribute.unit and is_subtype(attribute.type, column.type)


def _column_of(node: Node, column: Column) -> Node:
    if isinstance(node, Read):
        return replace(node, path=(*node.path, column.name), optional=(*node.optional, True), type=column.type)
    return Field(node, column.name, column.type, optional=True)


def _struct_of(type: Type) -> Struct:
    assert isinstance(type, Struct)
    return type
