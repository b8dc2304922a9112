"""A row of the function table: how one function with given argument types runs; and values as literals of Spark SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from typing import Any

import msgspec

from situ.lang.catalogue import NOT_IN_LANGUAGE
from situ.lang.problems import SituError

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Values and names as Spark SQL writes them.


def spark_text(value: str) -> str:
    """Quoted so that no character can end the literal or start an escape, whatever the session's settings."""
    return "'" + "".join(_CHARACTERS.get(c, c) for c in value) + "'"


# The dollar sign too: Spark would replace ${…} in the text of a query by settings of its own.
_CHARACTERS = {"$": "\\u0024", "\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\u0000", "\x1a": "\\u001A"}


def spark_name(value: str) -> str:
    """Quoted likewise. Names have no escapes, so one that Spark would replace by a setting cannot be written."""
    if "${" in value:
        raise SituError(NOT_IN_LANGUAGE(found=f"The name `{value}`"))
    return "`" + value.replace("`", "``") + "`"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# How one function with given argument types runs in Spark and in Python: a row of the function table.
#
# ``spark`` and ``python`` are templates over the text of the arguments, ``{0}``, ``{1}``, …, or functions that write
# the text where constant arguments shape it. They only ever receive the text of checked arguments, so nothing a user
# writes reaches an engine unread.
#
# A function that ``fails`` yields null in Spark exactly when it fails on arguments that are not null, and raises
# ArithmeticError or ValueError in Python: that is the whole contract between the table and the emitters.


class Overflow(IntEnum):
    """What a double may be besides finite; each level includes those before it."""

    NONE = 0
    INFINITE = 1
    NAN = 2


class Arithmetic(Enum):
    """How a function treats doubles that are not finite."""

    STRICT = "takes and gives finite numbers only"
    SUM = "IEEE sum or difference: NaN if both sides may be infinite"
    PRODUCT = "IEEE product: NaN if one side may be infinite and the other zero"
    QUOTIENT = "IEEE quotient of any dividend by a finite divisor that is not zero"
    SIGN = "changes nothing but the sign"
    NORM = "takes finite numbers, may give an infinity, never NaN"


class UnitRule(Enum):
    """What units a function takes and gives."""

    NONE = "numbers without units"
    SAME = "all arguments in the unit of the first, which is the unit of the result"
    ALIKE = "all arguments in the unit of the first, the result has none"
    ANGLE = "angles, taken in radians"
    ROOT = "the square root of the unit"
    FREE = "any unit, the result has none"
    METRES = "angles, taken in degrees; the result is in metres"


SparkText = Callable[[Sequence[str], Sequence[Any]], str]
PythonText = Callable[[Sequence[str], Sequence[Any], Callable[[Any], str]], str]


class Overload(msgspec.Struct, frozen=True, kw_only=True):
    """One signature of a function and its two implementations.

    ``parameters`` name primitives, ``decimal`` (of any size), ``list`` and ``points``. ``constants`` are the places
    whose argument must be a literal. ``optional`` counts trailing parameters that may be left out. ``inexact`` marks
    functions whose last digit depends on the engine's mathematics. ``checks_result``: the Spark text gives NaN or an
    infinity where the function fails. ``refuses`` says what is wrong with the constants, or nothing. ``lookup``: it
    finds the row of a table, which for one event is the same however often it is asked for.
    """

    name: str
    parameters: tuple[str, ...]
    result: str
    spark: str | SparkText
    python: str | PythonText
    fails: bool = False
    may_be_null: bool = False
    optional: int = 0
    variadic: bool = False
    constants: tuple[int, ...] = ()
    arithmetic: Arithmetic = Arithmetic.STRICT
    unit: UnitRule = UnitRule.NONE
    inexact: bool = False
    checks_result: bool = False
    lookup: bool = False
    refuses: Callable[[Sequence[Any]], str] | None = None

    @property
    def signature(self) -> str:
        """As the reference shows it: ``substring(string, long[, long]) -> string``."""
        fixed = len(self.parameters) - self.optional
        shown = ", ".join(self.parameters[:fixed])
        for parameter in self.parameters[fixed:]:
            shown += f"[, {parameter}]" if shown else f"[{parameter}]"
        return f"{self.name}({shown}{', …' if self.variadic else ''}) -> {self.result}"

    def tolerance(self, place: int) -> Overflow:
        """What the argument at ``place`` may be besides finite."""
        match self.arithmetic:
            case Arithmetic.STRICT | Arithmetic.NORM:
                return Overflow.NONE
            case Arithmetic.QUOTIENT:
                return Overflow.NAN if place == 0 else Overflow.NONE
            case Arithmetic.SUM | Arithmetic.PRODUCT | Arithmetic.SIGN:
                return Overflow.NAN

    def overflow_of(self, args: Sequence[Overflow], may_be_zero: Sequence[bool]) -> Overflow:
        """What the result may be besides finite, given what the arguments may be."""
        if self.arithmetic is Arithmetic.STRICT or self.result != "double":
            return Overflow.NONE
        if Overflow.NAN in args:
            return Overflow.NAN
        match self.arithmetic:
            case Arithmetic.SUM:
                return Overflow.NAN if args.count(Overflow.INFINITE) > 1 else Overflow.INFINITE
            case Arithmetic.PRODUCT:
                vanishing = any(
                    arg is Overflow.INFINITE and zero
                    for place, arg in enumerate(args)
                    for other, zero in enumerate(may_be_zero)
                    if other != place
                )
                return Overflow.NAN if vanishing else Overflow.INFINITE
            case Arithmetic.QUOTIENT | Arithmetic.NORM:
                return Overflow.INFINITE
            case Arithmetic.SIGN:
                return max(args)


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """A function of the language: what it is for, and how it runs for each signature.

    ``examples`` are pairs of an expression and its result as a literal; the reference prints them and
    a test runs them on both engines.
    """

    name: str
    group: str
    doc: str
    overloads: tuple[Overload, ...]
    examples: tuple[tuple[str, str], ...] = ()
