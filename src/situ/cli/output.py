"""Where a command's words go: answers to standard output, notes and refusals to standard error, or all of it as JSON.

Owns streams, encodings, colour and width. What is said and how it is laid out is for the ``show_…`` modules; rich is
imported only when something is laid out. A reader that has had enough (``situ … | head -1``) is no error: the command
goes on to its end, so its exit code still tells the truth.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType

    from situ.lang.problems import Problem

    Shown = Iterable[RenderableType]

_UNBROKEN = 10_000
"""Columns where there is no terminal: lines that a program reads are not wrapped."""


class Output:
    """What one command says. ``json`` and ``quiet`` are its options of these names.

    ``lined`` says that with ``json`` everything is one line: for commands that answer again and again.
    """

    __slots__ = ("_err", "_out", "json", "lined", "quiet")

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self.json = False
        self.quiet = False
        self.lined = False
        self._out, self._err = out, err

    def answer(self, data: Callable[[], Any], shown: Callable[[], Shown]) -> None:
        """What was asked for: as data with ``--json``, else laid out for people."""
        if self.json:
            self.data(data())
        else:
            self.show(shown())

    def data(self, value: Any) -> None:
        # Outside of UTF-8 the escapes of JSON are the only ones that a reader of JSON knows.
        text = json.dumps(value, indent=2, ensure_ascii=not _speaks_utf8(self._out), allow_nan=False)
        _write(self._out, text + "\n")

    def line(self, value: Any) -> None:
        """One of many answers, each a line of JSON."""
        _write(self._out, json.dumps(value, ensure_ascii=not _speaks_utf8(self._out), allow_nan=False) + "\n")

    def show(self, shown: Shown) -> None:
        _write(self._out, _laid_out(shown, self._out))

    def text(self, text: str) -> None:
        """A text to be read by programs as much as by people, such as YAML: exactly as it is."""
        _write(self._out, text)

    def say(self, text: str) -> None:
        """What was done, where that is all there is to say."""
        if not self.quiet and not self.json:
            _write(self._out, visible(text) + "\n")

    def note(self, text: str) -> None:
        """What helps a person beside the answer."""
        if not self.quiet and not self.json:
            _write(self._err, visible(text) + "\n")

    def warn(self, problems: Iterable[Problem]) -> None:
        """What does not keep the answer from being given, but should be known."""
        from situ.cli.render.text import show_problems

        _write(self._err, _laid_out(show_problems(problems), self._err))

    def refuse(self, problems: Iterable[Problem]) -> None:
        """Why there is no answer."""
        if self.json:
            (self.line if self.lined else self.data)({"problems": [problem.as_json() for problem in problems]})
        else:
            self.warn(problems)

    def complain(self, text: str) -> None:
        """What is wrong with how the command was called."""
        _write(self._err, visible(text) + "\n")

    @property
    def has_terminal(self) -> bool:
        """Whether a person is watching, so that progress is worth showing."""
        return not self.quiet and not self.json and self._err.isatty()

    @property
    def answers_terminal(self) -> bool:
        """Whether answers go to a person's eyes, so that they may be drawn over."""
        return not self.quiet and not self.json and self._out.isatty()


def standard_output() -> Output:
    """Standard output and error, made able to take any text."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            ascii_by_default = stream.encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968")
            unasked = ascii_by_default and "PYTHONIOENCODING" not in os.environ
            stream.reconfigure(encoding="utf-8" if unasked else None, errors="backslashreplace")
    return Output(sys.stdout or _nowhere(), sys.stderr or _nowhere())


def _nowhere() -> TextIO:
    """In place of a stream that whoever started us has closed."""
    return Path(os.devnull).open("w", encoding="utf-8")


def visible(text: str) -> str:
    """The text without characters that would steer the terminal: whoever wrote them, they only show."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def _laid_out(shown: Shown, stream: TextIO) -> str:
    from rich.console import Console
    from rich.text import Text

    terminal = stream.isatty()
    console = Console(
        file=io.StringIO(),
        force_terminal=True if terminal else None,
        width=None if terminal else _UNBROKEN,
        markup=False,
        highlight=False,
        emoji=False,
    )
    for each in shown:
        # Text is left to the terminal to wrap, so that what is copied from there is in one piece.
        console.print(each, soft_wrap=isinstance(each, Text))
    written: str = console.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO above
    return written if console.is_terminal else _without_padding(written)


def _without_padding(text: str) -> str:
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def _speaks_utf8(stream: TextIO) -> bool:
    return stream.encoding.lower().replace("-", "").replace("_", "") == "utf8"


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        # What is still in the buffer goes nowhere, or closing the stream would complain a second time.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, "output") from None
