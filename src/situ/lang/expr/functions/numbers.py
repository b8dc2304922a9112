"""Rows of the function table: arithmetic, functions on numbers, and geometry on coordinates.

No Spark text may raise, not even behind a CASE that excludes it: Spark computes what several branches share before it
chooses one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from situ.lang.expr.overload import Arithmetic, Function, Overload, UnitRule

WHOLE = "4503599627370496D"  # 2^52: from here on every double is a whole number
_LONG_RANGE = "{0} >= -9223372036854775808D AND {0} < 9223372036854775808D"


def _arithmetic(
    name: str, doc: str, spark_try: str, kind: Arithmetic, examples: tuple[tuple[str, str], ...]
) -> Function:
    """int ∘ int is computed in long and cannot overflow; long ∘ long can; doubles follow IEEE until they are used."""
    widened = f"(CAST({{0}} AS BIGINT) {name} CAST({{1}} AS BIGINT))"

    def spark(args: Sequence[str], constants: Sequence[Any]) -> str:
        return f"{spark_try}({apart(args[0])}, {apart(args[1])})"

    return Function(
        name=name,
        group="arithmetic",
        doc=doc,
        overloads=(
            Overload(
                name=name, parameters=("int", "int"), result="long", spark=widened, python=f"({{0}} {name} {{1}})"
            ),
            Overload(
                name=name,
                parameters=("long", "long"),
                result="long",
                spark=spark,
                python=f"_long({{0}} {name} {{1}})",
                fails=True,
            ),
            Overload(
                name=name,
                parameters=("double", "double"),
                result="double",
                spark=f"({{0}} {name} {{1}})",
                python=f"({{0}} {name} {{1}})",
                arithmetic=kind,
            ),
        ),
        examples=examples,
    )


def apart(text: str) -> str:
    """An operand kept apart: Spark puts the constants of nested sums and products together, where they may overflow."""
    return f"({text} | 0L)" if text.startswith(("try_add(", "try_multiply(", "(CAST(")) else text


def _scaled(value: str, digits: int) -> str:
    """``|value| * 10^digits`` rounded half away from zero, as in :func:`situ.lang.expr.runtime.scaled`, below 2^52."""
    factor = f"{10.0**digits!r}D"
    below = f"CAST(floor(abs({value}) * {factor}) AS BIGINT)"
    return f"({below} + CASE WHEN abs({value}) >= ({below} + 0.5D) / {factor} THEN 1L ELSE 0L END)"


def _below(value: str, digits: int) -> str:
    return f"abs({value}) * {10.0**digits!r}D < {WHOLE}"


def _round(args: Sequence[str], constants: Sequence[Any]) -> str:
    value, digits = args[0], _digits(constants)
    rounded = f"CAST({_scaled(value, digits)} AS DOUBLE) / {10.0**digits!r}D"
    return f"CASE WHEN {_below(value, digits)} THEN {rounded} * CASE WHEN {value} < 0D THEN -1D ELSE 1D END ELSE {value} END"


def _round_python(args: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
    return f"_round_double({args[0]}, {_digits(constants)})"


def _format_number(args: Sequence[str], constants: Sequence[Any]) -> str:
    value, digits = args[0], _digits(constants)
    units = _scaled(value, digits)
    sign = f"CASE WHEN {value} < 0D AND {units} > 0 THEN '-' ELSE '' END"
    whole = f"CAST({units} DIV {10**digits} AS STRING)"
    part = f", '.', lpad(CAST({units} % {10**digits} AS STRING), {digits}, '0')" if digits else ""
    return f"CASE WHEN {_below(value, digits)} THEN concat({sign}, {whole}{part}) END"


def _format_python(args: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
    return f"_format_number({args[0]}, {_digits(constants)})"


def _digits(constants: Sequence[Any]) -> int:
    return int(constants[0]) if constants and constants[0] is not None else 0


def _to_decimal(source: str) -> Callable[[Sequence[str], Sequence[Any]], str]:
    def write(args: Sequence[str], constants: Sequence[Any]) -> str:
        value, (precision, scale) = args[0], constants
        target = f"DECIMAL({precision},{scale})"
        if source == "double":
            exact = f"CAST({_scaled(value, scale)} * CASE WHEN {value} < 0D THEN -1 ELSE 1 END AS DECIMAL(20,0))"
            step = f"CAST({10**scale} AS DECIMAL(38,0))"
            shifted = (
                f"CAST({exact} AS DECIMAL(38,0))"
                if scale == 0
                else f"try_divide(CAST({exact} AS DECIMAL(20,0)), {step})"
            )
            return f"CASE WHEN {_below(value, scale)} THEN try_cast({shifted} AS {target}) END"
        if source == "string":
            form = r"^[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)$"
            return f"CASE WHEN length({value}) <= 60 AND {value} RLIKE '{form}' THEN try_cast({value} AS {target}) END"
        return f"try_cast({value} AS {target})"

    return write


def _to_decimal_python(function: str) -> Callable[[Sequence[str], Sequence[Any], Callable[[Any], str]], str]:
    def write(args: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
        value = args[0] if function != "_fit_decimal" else f"_Decimal({args[0]})"
        return f"{function}({value}, {constants[0]}, {constants[1]})"

    return write


def _float_function(name: str, doc: str, spark: str, python: str, *examples: tuple[str, str], **how: Any) -> Function:
    overload = Overload(name=name, parameters=("double",), result="double", spark=spark, python=python, **how)
    return Function(name=name, group="numbers", doc=doc, overloads=(overload,), examples=examples)


def _to_whole(name: str, spark: str, python: str, doc: str, *examples: tuple[str, str]) -> Function:
    guarded = f"CASE WHEN {_LONG_RANGE} THEN {spark} END"
    double = Overload(
        name=name, parameters=("double",), result="long", spark=guarded, python=python, fails=True, unit=UnitRule.SAME
    )
    return Function(name=name, group="numbers", doc=doc, overloads=(double,), examples=examples)


NUMBERS: tuple[Function, ...] = (
    _arithmetic("+", "Sum; also of a timestamp and a duration.", "try_add", Arithmetic.SUM, (("2 + 3", "5"), ("0.1 + 0.2", "0.30000000000000004"))),
    _arithmetic("-", "Difference; of two timestamps a duration.", "try_subtract", Arithmetic.SUM, (("2 - 3", "-1"),)),
    _arithmetic("*", "Product; units multiply.", "try_multiply", Arithmetic.PRODUCT, (("2 * 3", "6"),)),
    Function(
        name="/",
        group="arithmetic",
        doc="Quotient, never an integer division; units divide. Fails if the divisor is zero.",
        overloads=(
            Overload(
                name="/",
                parameters=("double", "double"),
                result="double",
                spark="try_divide({0}, {1})",
                python="({0} / {1})",
                fails=True,
                arithmetic=Arithmetic.QUOTIENT,
            ),
        ),
        examples=(("7 / 2", "3.5"),),
    ),
    Function(
        name="%",
        group="arithmetic",
        doc="Remainder, with the sign of the dividend. Fails if the divisor is zero.",
        overloads=(
            Overload(name="%", parameters=("long", "long"), result="long", spark="try_mod({0}, {1})", python="_long_remainder({0}, {1})", fails=True, unit=UnitRule.SAME),
            Overload(name="%", parameters=("double", "double"), result="double", spark="try_mod({0}, {1})", python="_remainder({0}, {1})", fails=True, unit=UnitRule.SAME),
        ),
        examples=(("-7 % 3", "-1"), ("7.5 % 2", "1.5")),
    ),
    Function(
        name="negate",
        group="arithmetic",
        doc="The number with the other sign; written `-x`.",
        overloads=(
            Overload(name="negate", parameters=("int",), result="long", spark="(- CAST({0} AS BIGINT))", python="(-{0})", unit=UnitRule.SAME),
            Overload(name="negate", parameters=("long",), result="long", spark="try_subtract(0L, {0})", python="_long(-{0})", fails=True, unit=UnitRule.SAME),
            Overload(name="negate", parameters=("double",), result="double", spark="(- {0})", python="(-{0})", arithmetic=Arithmetic.SIGN, unit=UnitRule.SAME),
            Overload(name="negate", parameters=("duration",), result="duration", spark="try_subtract(0L, {0})", python="_duration(-{0})", fails=True),
        ),
    ),
    Function(
        name="abs",
        group="numbers",
        doc="The number without its sign.",
        overloads=(
            Overload(name="abs", parameters=("int",), result="long", spark="abs(CAST({0} AS BIGINT))", python="abs({0})", unit=UnitRule.SAME),
            Overload(name="abs", parameters=("long",), result="long", spark="CASE WHEN {0} >= 0L THEN {0} ELSE try_subtract(0L, {0}) END", python="_long(abs({0}))", fails=True, unit=UnitRule.SAME),
            Overload(name="abs", parameters=("double",), result="double", spark="abs({0})", python="abs({0})", arithmetic=Arithmetic.SIGN, unit=UnitRule.SAME),
        ),
        examples=(("abs(-2.5)", "2.5"),),
    ),
    Function(
        name="round",
        group="numbers",
        doc="Rounds to so many digits after the point (none if left out), halves away from zero. A double counts as the decimal it is nearest to: `1.005` is a half.",
        overloads=(
            Overload(name="round", parameters=("double", "int"), result="double", spark=_round, python=_round_python, optional=1, constants=(1,), unit=UnitRule.SAME),
        ),
        examples=(("round(2.5)", "3.0"), ("round(-1.25, 1)", "-1.3"), ("round(1.005, 2)", "1.01")),
    ),
    _to_whole("floor", "floor({0})", "_floor({0})", "The largest whole number not above it. Fails beyond the range of long.", ("floor(-1.5)", "-2")),
    _to_whole("ceil", "ceil({0})", "_ceil({0})", "The smallest whole number not below it. Fails beyond the range of long.", ("ceil(1.2)", "2")),
    Function(
        name="sqrt",
        group="numbers",
        doc="Square root. Fails on negative numbers.",
        overloads=(Overload(name="sqrt", parameters=("double",), result="double", spark="CASE WHEN {0} >= 0D THEN sqrt({0}) END", python="_sqrt({0})", fails=True, unit=UnitRule.ROOT),),
        examples=(("sqrt(6.25)", "2.5"),),
    ),
    Function(
        name="power",
        group="numbers",
        doc="The first number raised to the second. Fails where the result is not a finite number.",
        overloads=(Overload(name="power", parameters=("double", "double"), result="double", spark="power({0}, {1})", python="_power({0}, {1})", fails=True, checks_result=True, inexact=True),),
        examples=(("power(2, 10)", "1024.0"),),
    ),
    _float_function("exp", "e raised to the number. Fails on overflow.", "exp({0})", "_exp({0})", ("exp(0)", "1.0"), fails=True, checks_result=True, inexact=True),
    _float_function("ln", "Natural logarithm. Fails on zero and below.", "CASE WHEN {0} > 0D THEN ln({0}) END", "_log({0})", ("ln(1)", "0.0"), fails=True, inexact=True),
    _float_function("sin", "Sine of an angle.", "sin({0})", "_sin({0})", ("sin(0)", "0.0"), unit=UnitRule.ANGLE, inexact=True),
    _float_function("cos", "Cosine of an angle.", "cos({0})", "_cos({0})", ("cos(0)", "1.0"), unit=UnitRule.ANGLE, inexact=True),
    _float_function("tan", "Tangent of an angle.", "tan({0})", "_tan({0})", ("tan(0)", "0.0"), unit=UnitRule.ANGLE, inexact=True),
    Function(
        name="atan2",
        group="numbers",
        doc="The angle, in radians, of the direction whose height is the first and whose width is the second argument.",
        overloads=(Overload(name="atan2", parameters=("double", "double"), result="double", spark="atan2({0}, {1})", python="_atan2({0} + 0.0, {1} + 0.0)", unit=UnitRule.ALIKE, inexact=True),),
        examples=(("atan2(0, 1)", "0.0"),),
    ),
    _float_function("radians", "Degrees to radians, as plain numbers.", "({0} * 0.017453292519943295D)", "({0} * 0.017453292519943295)", ("radians(180)", "3.141592653589793")),
    Function(
        name="degrees",
        group="numbers",
        doc="Radians to degrees, as plain numbers.",
        overloads=(Overload(name="degrees", parameters=("double",), result="double", spark="({0} * 57.29577951308232D)", python="({0} * 57.29577951308232)", arithmetic=Arithmetic.NORM),),
        examples=(("degrees(0)", "0.0"),),
    ),
    Function(
        name="to_double",
        group="conversions",
        doc="A number, or a text that is written as one (with a point, not a comma), as a double. Fails if the text is no number.",
        overloads=(
            Overload(name="to_double", parameters=("double",), result="double", spark="{0}", python="{0}", unit=UnitRule.SAME),
            Overload(name="to_double", parameters=("decimal",), result="double", spark="CAST({0} AS DOUBLE)", python="float({0})", unit=UnitRule.SAME),
            Overload(
                name="to_double",
                parameters=("string",),
                result="double",
                spark="CASE WHEN length({0}) <= 400 AND {0} RLIKE '^[+-]?([0-9]+\\\\.?[0-9]*|\\\\.[0-9]+)([eE][+-]?[0-9]+)?$' AND abs(try_cast({0} AS DOUBLE)) <= 1.7976931348623157E308D THEN try_cast({0} AS DOUBLE) END",
                python="_double_of_text({0})",
                fails=True,
            ),
        ),
        examples=(("to_double('2.50')", "2.5"),),
    ),
    Function(
        name="to_long",
        group="conversions",
        doc="A number cut to a whole one, or a text of digits, as a long. Fails if it is none or beyond the range.",
        overloads=(
            Overload(name="to_long", parameters=("long",), result="long", spark="{0}", python="{0}", unit=UnitRule.SAME),
            Overload(name="to_long", parameters=("double",), result="long", spark=f"CASE WHEN {_LONG_RANGE} THEN try_cast({{0}} AS BIGINT) END", python="_truncate({0})", fails=True, unit=UnitRule.SAME),
            Overload(name="to_long", parameters=("decimal",), result="long", spark="try_cast({0} AS BIGINT)", python="_long(int({0}))", fails=True, unit=UnitRule.SAME),
            Overload(name="to_long", parameters=("string",), result="long", spark="CASE WHEN length({0}) <= 400 AND {0} RLIKE '^[+-]?[0-9]+$' THEN try_cast({0} AS BIGINT) END", python="_long_of_text({0})", fails=True),
        ),
        examples=(("to_long('42')", "42"), ("to_long(-2.9)", "-2")),
    ),
    Function(
        name="to_decimal",
        group="conversions",
        doc="The number or text as a decimal of so many digits, so many of them after the point, rounded half away from zero. Fails if it does not fit.",
        overloads=(
            Overload(name="to_decimal", parameters=("long", "int", "int"), result="decimal", spark=_to_decimal("long"), python=_to_decimal_python("_fit_decimal"), constants=(1, 2), fails=True, unit=UnitRule.SAME),
            Overload(name="to_decimal", parameters=("double", "int", "int"), result="decimal", spark=_to_decimal("double"), python=_to_decimal_python("_decimal_of_double"), constants=(1, 2), fails=True, unit=UnitRule.SAME),
            Overload(name="to_decimal", parameters=("decimal", "int", "int"), result="decimal", spark=_to_decimal("decimal"), python=_to_decimal_python("_fit_decimal"), constants=(1, 2), fails=True, unit=UnitRule.SAME),
            Overload(name="to_decimal", parameters=("string", "int", "int"), result="decimal", spark=_to_decimal("string"), python=_to_decimal_python("_decimal_of_text"), constants=(1, 2), fails=True),
        ),
        examples=(("to_string(to_decimal(2.5, 10, 2))", "'2.50'"),),
    ),
    Function(
        name="format_number",
        group="conversions",
        doc="A double as text with exactly so many digits after the point. Fails if it has more than 15 digits.",
        overloads=(Overload(name="format_number", parameters=("double", "int"), result="string", spark=_format_number, python=_format_python, constants=(1,), fails=True, unit=UnitRule.FREE),),
        examples=(("format_number(3.14159, 2)", "'3.14'"),),
    ),
)  # fmt: skip


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Geometry on coordinates. The checker takes points, boxes and polygons apart, so these see plain numbers.

_FAR = "1.0E100D"


def _in_polygon(args: Sequence[str], constants: Sequence[Any]) -> str:
    x, y, points = args
    far = f"exists({points}, _situ_p -> abs(_situ_p.x) > {_FAR} OR abs(_situ_p.y) > {_FAR})"
    following = f"concat(slice({points}, 2, greatest(size({points}) - 1, 0)), slice({points}, 1, 1))"
    crossing = (
        f"CASE WHEN (_situ_a.y > {y}) <> (_situ_b.y > {y}) THEN "
        f"CASE WHEN {x} < try_divide((_situ_b.x - _situ_a.x) * ({y} - _situ_a.y), _situ_b.y - _situ_a.y) + _situ_a.x THEN 1 ELSE 0 END ELSE 0 END"
    )
    count = f"aggregate(zip_with({points}, {following}, (_situ_a, _situ_b) -> {crossing}), 0, (_situ_n, _situ_c) -> _situ_n + _situ_c)"
    return f"CASE WHEN abs({x}) <= {_FAR} AND abs({y}) <= {_FAR} AND NOT {far} THEN {count} % 2 = 1 END"


_GEO_DISTANCE = (
    "CASE WHEN abs({0}) <= 90D AND abs({2}) <= 90D AND abs({1}) <= 360D AND abs({3}) <= 360D THEN "
    "2D * 6371008.8D * asin(sqrt(least(1D, "
    "sin(({2} - {0}) * 0.017453292519943295D / 2D) * sin(({2} - {0}) * 0.017453292519943295D / 2D) + "
    "cos({0} * 0.017453292519943295D) * cos({2} * 0.017453292519943295D) * "
    "(sin(({3} - {1}) * 0.017453292519943295D / 2D) * sin(({3} - {1}) * 0.017453292519943295D / 2D))))) END"
)
_FOUR = ("double", "double", "double", "double")

GEOMETRY: tuple[Function, ...] = (
    Function(
        name="distance",
        group="geometry",
        doc="Distance of two points, `distance(a, b)`: straight for points with x and y, in their unit; along the Earth's surface for points with lat and lon, in metres. Also of coordinates: `distance(x1, y1, x2, y2)`.",
        overloads=(Overload(name="distance", parameters=_FOUR, result="double", spark="sqrt(({0} - {2}) * ({0} - {2}) + ({1} - {3}) * ({1} - {3}))", python="_distance({0}, {1}, {2}, {3})", arithmetic=Arithmetic.NORM, unit=UnitRule.SAME),),
        examples=(("distance(0, 0, 3, 4)", "5.0"),),
    ),
    Function(
        name="geo_distance",
        group="geometry",
        doc="Distance along the Earth's surface, in metres, of `lat1, lon1, lat2, lon2` in degrees. Fails outside ±90° and ±360°.",
        overloads=(Overload(name="geo_distance", parameters=_FOUR, result="double", spark=_GEO_DISTANCE, python="_geo_distance({0}, {1}, {2}, {3})", fails=True, inexact=True, unit=UnitRule.METRES),),
        examples=(("round(geo_distance(47, 8, 48, 8) / 1000)", "111.0"),),
    ),
    Function(
        name="in_polygon",
        group="geometry",
        doc="Whether the point x, y lies in the polygon given as a list of points; `inside(point, polygon)` is written in terms of it. Of the border, the lower and left part counts.",
        overloads=(Overload(name="in_polygon", parameters=("double", "double", "points"), result="boolean", spark=_in_polygon, python="_in_polygon({0}, {1}, {2})", fails=True, unit=UnitRule.FREE),),
    ),
)  # fmt: skip
