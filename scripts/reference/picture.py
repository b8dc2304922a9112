"""The picture of the README: what its first ``situ check`` shows in a terminal."""

from __future__ import annotations

import inspect
import io
import re
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from reference.examples import Command, File, Runner, steps

README = Path(__file__).parents[2] / "README.md"
SHOWN = "situ check"
_WIDTH = 100
_FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
# The picture stands on pages that fetch nothing from elsewhere: no web fonts.
_USUAL = inspect.signature(Console.export_svg).parameters["code_format"].default
_FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", _USUAL, flags=re.DOTALL).replace("Fira Code, monospace", _FONTS)


def _colours(text: str) -> list[tuple[int, int, int]]:
    return [(number >> 16, number >> 8 & 255, number & 255) for number in (int(each, 16) for each in text.split())]


_THEME = TerminalTheme(
    (18, 24, 27),
    (220, 226, 226),
    _colours("12181b f06262 78c882 e6be5a 6eaaf0 c88ce6 5ac8c8 dce2e2"),
    _colours("788287 ff7878 8cdc96 fad26e 82beff dca0fa 6edcdc ffffff"),
)


def page() -> str:
    console = Console(
        record=True,
        file=io.StringIO(),
        width=_WIDTH,
        force_terminal=True,
        color_system="truecolor",
        markup=False,
        highlight=False,
        emoji=False,
    )
    console.print(Text(f"$ {SHOWN}", "bold"))
    console.print(Text.from_ansi(_shown()))
    svg = console.export_svg(title="Situ", theme=_THEME, code_format=_FORMAT, unique_id="situ")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def _shown() -> str:
    """The output in colour, with a time that does not change from run to run."""
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(Path(folder).resolve(), colour=True)
        for step in steps(README.read_text()):
            match step:
                case File():
                    runner.write(step)
                case Command(text=text):
                    _, output = runner.run(step)
                    if text == SHOWN:
                        return re.sub(r"\d+\.\d s", "0.4 s", output).rstrip("\n")
    raise ValueError(f"{README.name} does not run `{SHOWN}`")
