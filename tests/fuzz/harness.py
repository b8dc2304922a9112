"""What the fuzz targets share: start the fuzzer with our code instrumented, and the words expressions are made of."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, outside of pytest

from situ.lang.units import Units

WORDS = (
    "d d_ e_ i i_ l l_ m t dec dec_ s s_ b b_ y_ date ts ts_ dur dur_ at at_ at.x lines lines_ ns data "
    "event value x y AND OR NOT IN BETWEEN CASE WHEN THEN ELSE END IS NULL TRUE FALSE LIKE ESCAPE AS = <> "
    "< <= > >= + - * / % || -> ( ) [ ] , . 0 1 -1 2.5 1e308 9223372036854775807 99999999999999999999 0.1 "
    "'a' 'a%' '' '%' 'Europe/Zurich' 'yyyy-MM-dd' m ft km/h TIMESTAMP DATE DURATION "
    "'2026-11-01T12:00:00Z' '2026-11-01' 'PT5S' ` \" ' ; : { } $ \\ -- /* @ ? abs round floor ceil sqrt "
    "power exp ln sin cos atan2 radians to_double to_long to_decimal to_string format_number upper lower "
    "trim length substring replace split_part kv starts_with contains from_epoch_ms epoch_ms parse_time "
    "format_time year hour weekday date_of seconds distance geo_distance in_polygon inside within struct "
    "coalesce if least greatest transform filter exists forall size element_at at_most "
).split()


def fuzz(target: Callable[[bytes], None]) -> None:
    Units().parse("m")  # the catalogue of units is read at first use, which must not count as time of an input
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()
