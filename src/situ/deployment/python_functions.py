"""Functions of Python at work: called for many events at once, and what they gave kept until those are converted.

An expression asks for the result for one value. Before a batch is converted it is gone through once to find out which
values will be asked for; then each function is called with all of them, and every question is answered from what it
gave. A call that fails is narrowed down to the values that make it fail.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import msgspec

from situ.deployment.memory import Held
from situ.event.isolation import is_of_event
from situ.expr.runtime import FAILURES
from situ.interpretation.calls import External
from situ.interpretation.code import digest, without_declarations
from situ.interpretation.model import Conversion
from situ.interpretation.rows import Find
from situ.interpretation.transformation import Transformation
from situ.types.model import Type
from situ.types.python_values import example

_LONGEST_SHOWN = 80
_encode = msgspec.json.Encoder().encode
_modules: dict[str, ModuleType] = {}
"""By the digest of their text: what was executed once in this process."""


class PythonFailed(ValueError):
    """A function has no result for a value."""


@dataclass(slots=True)
class _Called:
    """A function with what it gave, by the text of the value; and what it is still to be asked."""

    function: Conversion
    known: dict[bytes, Any] = field(default_factory=dict)
    asked: dict[bytes, Any] = field(default_factory=dict)


class PythonFunctions:
    """The functions of one deployment. ``calls`` counts how often one was called."""

    __slots__ = ("_called", "_depth", "_looking", "calls")

    def __init__(self) -> None:
        self._called: dict[tuple[str, str, Type, Type], _Called] = {}
        self._looking = False
        self._depth = 0
        self.calls = 0

    def finders(self, way: Transformation) -> dict[str, Find]:
        """How the results that a transformation needs are found, by the names of its variables."""
        return {name: self._finder(each) for name, each in way.externals.items() if each.of is None}

    @contextmanager
    def together(self, *rounds: Iterable[Callable[[], object]]) -> Iterator[None]:
        """Within, what these would ask for is known: they were run once, for nothing but that, before it begins.

        A round is made up, run and answered before the next one is.

        Results are forgotten at the end. Of several that are nested only the outermost looks and forgets.
        """
        self._depth += 1
        try:
            if self._depth == 1:
                for work in rounds:
                    self._look(work)
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self._called.clear()

    def _look(self, work: Iterable[Callable[[], object]]) -> None:
        self._looking = True
        try:
            for each in work:
                with suppress(*FAILURES, Held):
                    each()
        except Exception as error:
            if not is_of_event(error):
                raise
        finally:
            self._looking = False
        for called in self._called.values():
            if called.asked:
                asked, called.asked = called.asked, {}
                self._call(called, tuple(asked), tuple(asked.values()))

    def _finder(self, external: External) -> Find:
        function = external.function
        key = (digest(function.code), function.python, function.parameter.type, function.result.type)
        stands_in = example(function.result.type)
        wrapped = function.nulls

        def find(value: Any) -> Any:
            value = value.get("value") if wrapped else value
            text = _encode(value)
            called = self._called.get(key)
            if called is None:
                called = self._called[key] = _Called(function)
            if text in called.known:
                found = called.known[text]
            elif self._looking:
                called.asked[text] = value
                return stands_in
            else:
                self._call(called, (text,), (value,))
                found = called.known.pop(text) if not self._depth else called.known[text]
            if isinstance(found, PythonFailed):
                raise found
            return found

        return find

    def _call(self, called: _Called, texts: Sequence[bytes], values: Sequence[Any]) -> None:
        """Call it for all; where that fails, for the halves, down to the values that fail by themselves."""
        waiting = [(texts, values)]
        while waiting:
            some, given = waiting.pop()
            self.calls += 1
            try:
                found = _results(called.function, given)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - not our code: whatever it raises is about these
                if len(given) == 1:
                    reason = f"{_shown(some[0])} gives {_said(error)}"
                    called.known[some[0]] = PythonFailed(reason)
                else:
                    half = len(given) // 2
                    waiting += [(some[half:], given[half:]), (some[:half], given[:half])]
            else:
                called.known.update(zip(some, found, strict=True))


def _results(function: Conversion, values: Sequence[Any]) -> list[Any]:
    # Arrow takes as long to load as all the rest, and only those who call functions need it.
    from situ.interpretation.arrow_values import Unfit, from_array, to_array

    run = loaded(function.python, function.code)
    array = to_array(values, function.parameter.type)
    found = from_array(run(array), function.result.type, len(values))
    if not function.result.optional and None in found:
        raise Unfit("it gave null, and its result is not `optional`")
    return found


def loaded(python: str, code: str) -> Callable[[Any], Any]:
    """The function ``file.function`` of this text; what the text raises when it is executed is raised."""
    file, _, name = python.rpartition(".")
    key = digest(code)
    module = _modules.get(key)
    if module is None:
        module = ModuleType(f"situ_functions_{file}_{key[:12]}")
        sys.modules[module.__name__] = module  # dataclasses look for the module of their annotations there
        try:
            exec(compile(without_declarations(code), f"functions/{file}.py", "exec"), module.__dict__)
        except BaseException:
            del sys.modules[module.__name__]
            raise
        _modules[key] = module
    function: Callable[[Any], Any] = getattr(module, name)
    return function


def _said(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}, {text[0]}" if text else type(error).__name__


def _shown(text: bytes) -> str:
    shown = text.decode()
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"
