"""Units: read in any spelling, converted exactly, refused when they are none."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import pytest

from situ.lang.units import IncompatibleUnits, Unit, Units, UnknownUnit, _table, atom_from_pint, conversion

UNITS = Units({"EUR": "currency", "USD": "currency", "building_a": "label"})

SPELLINGS = [
    ("m", "meter"), ("km/h", "kilometer/hour"), ("degC", "°C"), ("degF", "°F"), ("%", "percent"), ("deg", "°"),
    ("delta_degC", "Δ°C"),
    ("m^2", "m**2"), ("m^2", "m*m"), ("kg*m/s^2", "kg·m/s^2"), ("1/s", "s^-1"), ("µs", "us"), ("EUR/kg", "EUR/kg"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_two_spellings_of_one_unit_are_equal(one: str, other: str) -> None:
    assert UNITS.parse(one) == UNITS.parse(other)


@pytest.mark.parametrize("text", [spelling for pair in SPELLINGS for spelling in pair])
def test_printed_unit_reads_back(text: str) -> None:
    unit = UNITS.parse(text)
    assert UNITS.parse(str(unit)) == unit


@pytest.mark.parametrize(
    ("source", "target", "scale", "offset"),
    [
        ("ft", "m", Fraction(381, 1250), 0),
        ("yd", "m", Fraction(1143, 1250), 0),
        ("km/h", "m/s", Fraction(5, 18), 0),
        ("degF", "degC", Fraction(5, 9), Fraction(-160, 9)),
        ("degC", "K", 1, Fraction(27315, 100)),
        ("MiB", "B", 2**20, 0),
        ("kWh", "J", 3_600_000, 0),
        ("EUR/kg", "EUR/g", Fraction(1, 1000), 0),
    ],
)
def test_conversions_are_exact(source: str, target: str, scale: Fraction, offset: Fraction) -> None:
    assert conversion(UNITS.parse(source), UNITS.parse(target)) == (scale, offset)


@pytest.mark.parametrize(("source", "target"), [("m", "s"), ("EUR", "USD"), ("EUR", "m"), ("m", "m^2"), ("deg", "%")])
def test_different_things_do_not_convert(source: str, target: str) -> None:
    with pytest.raises(IncompatibleUnits):
        conversion(UNITS.parse(source), UNITS.parse(target))


HOSTILE = [
    "",
    "5",
    "m m",
    "m/",
    "/m",
    "m**999999999",
    "m^-99",
    "10**10",
    "m" * 5000,
    "kkkkkm",
    "__import__('os')",
    "m;",
    "dB",
    "Eur",
    "m\x00",
]


@pytest.mark.parametrize("text", HOSTILE, ids=[repr(text[:20]) for text in HOSTILE])
def test_what_is_no_unit_is_refused(text: str) -> None:
    with pytest.raises(UnknownUnit):
        UNITS.parse(text)


def test_nearest_names_are_offered() -> None:
    with pytest.raises(UnknownUnit) as refused:
        UNITS.parse("Eur")
    assert "EUR" in refused.value.nearest


def test_points_on_a_scale_have_a_difference() -> None:
    celsius = UNITS.parse("degC")
    assert celsius.is_point
    assert str(celsius.difference) == "delta_degC"
    assert not UNITS.parse("m").is_point


def test_a_name_with_two_readings_is_the_plain_unit(capfd: pytest.CaptureFixture[str]) -> None:
    assert UNITS.parse("mins") == UNITS.parse("min")
    assert capfd.readouterr().err == ""


def test_products_and_quotients_cancel() -> None:
    assert UNITS.parse("m/s") * UNITS.parse("s") == UNITS.parse("m")
    assert UNITS.parse("m") / UNITS.parse("m") == Units().parse("m").raised(Fraction(0))


def test_the_catalogue_of_units_is_loaded_only_when_one_is_read() -> None:
    code = "import sys, situ.lang.units, situ.lang.expr.checker.check; assert 'pint' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("text", ["millikilogram", "kilokilometer", "rmicromole"])
def test_a_second_prefix_is_no_unit_whatever_was_read_before(text: str) -> None:
    for before in ("kilometer", "micromole"):
        atom_from_pint(before)  # now pint lists it like a unit without prefix
    with pytest.raises(UnknownUnit):
        UNITS.parse(text)


def test_the_table_says_of_every_name_what_pint_says() -> None:
    """Whatever its generator wrote; what it leaves out is looked up in pint."""
    for name in _table():
        assert UNITS.parse(name) == Unit(((atom_from_pint(name), Fraction(1)),)), name


def test_units_that_are_not_in_the_table_are_read_all_the_same() -> None:
    assert "hectofurlong" not in _table()
    assert conversion(UNITS.parse("hectofurlong"), UNITS.parse("furlong")) == (100, 0)


def test_what_people_write_is_read_without_pint() -> None:
    program = "import sys\nfrom situ.lang.units import Units, _familiar\nunits = Units()\n"
    program += "for name in _familiar():\n    units.parse(name)\nassert 'pint' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
