"""Examples of docstrings, run: a doctest with ``await``, in a zone of the project that the reference page shows."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import dataclasses
import decimal
import doctest
import inspect
import io
import os
import typing
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import situ
import situ.testing
from scripts.reference.yard import YARD
from situ.testing import Zone

_OPTIONS = doctest.ELLIPSIS
_WITHIN = 60.0


class ExampleZone:
    """Where examples run: a zone with a server of its own in the current folder, and two connected clients."""

    def __init__(self, runner: asyncio.Runner, names: dict[str, Any]) -> None:
        self._runner = runner
        self._names = names

    def run(self, doc: str, name: str) -> list[str]:
        """What an example of a docstring said other than it shows, with both; empty if all is right."""
        names = dict(self._names)
        wrong = []
        examples = doctest.DocTestParser().get_examples(doc)
        assert examples, f"{name} has no example"
        for example in examples:
            said = self._said(example.source, name, names)
            if not doctest.OutputChecker().check_output(example.want, said, _OPTIONS):
                wrong.append(f"{name}, line {example.lineno}: {example.source}shows\n{example.want}and says\n{said}")
        return wrong

    def _said(self, source: str, name: str, names: dict[str, Any]) -> str:
        code = compile(source, name, "single", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self._runner.run(self._run(code, names))
        return said.getvalue()

    async def _run(self, code: CodeType, names: dict[str, Any]) -> None:
        """Code without ``await`` has the loop of the clients, too, as in ``python -m asyncio``."""
        async with asyncio.timeout(_WITHIN):
            result = eval(code, names)
            if code.co_flags & inspect.CO_COROUTINE:
                await result


@contextlib.contextmanager
def example_zone() -> Iterator[ExampleZone]:
    with contextlib.ExitStack() as stack:
        zone = stack.enter_context(Zone(YARD, bus="nats"))
        stack.callback(os.chdir, Path.cwd())
        os.chdir(zone.folder)
        runner = stack.enter_context(asyncio.Runner())
        clients = contextlib.AsyncExitStack()
        stack.callback(lambda: runner.run(clients.aclose()))
        connected = {
            name: runner.run(clients.enter_async_context(situ.connect(client=name))) for name in ("gate", "office")
        }
        names = {
            "asyncio": asyncio,
            "situ": situ,
            "dataclass": dataclasses.dataclass,
            "Annotated": typing.Annotated,
            "Decimal": decimal.Decimal,
            "yard": zone.folder,
            "__name__": "__main__",
            **connected,
        }
        yield ExampleZone(runner, names)
