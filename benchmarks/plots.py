"""Plots of the curves, as SVG that is the same whenever it is drawn from the same results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_STYLE = {
    "svg.hashsalt": "situ",  # ids of shapes, which are random otherwise
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.figsize": (7, 3.6),
}
Series = dict[str, list[tuple[float, float, float, float]]]
"""By name: x, median, lowest, highest."""


def draw(result: dict[str, Any], folder: Path) -> Path | None:
    """Draw a result that has a plot into this folder; gives the file."""
    plot = result.get("plot")
    if plot is None:
        return None
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    series = _curves(result) if plot["curves"] else _points(result, plot["figure"])
    path = folder / f"bench-{result['scenario']}.svg"
    folder.mkdir(exist_ok=True)
    with mpl.rc_context(_STYLE):
        figure, axes = pyplot.subplots(layout="constrained")
        for name, points in sorted(series.items()):
            x, median, low, high = (list(column) for column in zip(*points, strict=True))
            (line,) = axes.plot(x, median, marker="" if plot["curves"] else "o", markersize=4, label=name)
            if low != high:
                axes.fill_between(x, low, high, alpha=0.15, color=line.get_color(), linewidth=0)
        axes.set_xlabel(plot["x"])
        axes.set_ylabel(plot["y"])
        if plot["log_x"]:
            axes.set_xscale("log")
        if plot["log_y"]:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        if len(series) > 1:
            axes.legend(frameon=False)
        axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(_number))
        axes.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(_number))
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
    return path


def _points(result: dict[str, Any], figure: str) -> Series:
    found: Series = {}
    for variant in result["variants"]:
        if variant["point"] is not None:
            values = variant["figures"][figure] if figure else variant["rates"]
            middle = sorted(values)[len(values) // 2]
            found.setdefault(variant["series"] or result["unit"], []).append(
                (variant["point"], middle, min(values), max(values))
            )
    return {name: sorted(points) for name, points in found.items()}


def _curves(result: dict[str, Any]) -> Series:
    many = len(result["variants"]) > 1
    return {
        f"{variant['name']}, {name}" if many and name else variant["name"] if many else name: [
            (x, y, y, y) for x, y in points
        ]
        for variant in result["variants"]
        for name, points in variant["curves"].items()
    }


def _number(value: float, _: object) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"
