"""Checking a project folder: 1,000 types and 1,000 files, and how cost grows."""

from __future__ import annotations

from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.harness import Scenario, Variant, Verdict

SIZES = (125, 250, 500, 1000)


def make_folder(path: Path, size: int) -> Path:
    """``size`` event types, and ``size`` further files with functions and clients, each as long as a real one."""
    for name in ("types", "functions", "clients"):
        (path / name).mkdir()
    (path / "situ.yaml").write_text(f"version: 1\nname: size-{size}\n")
    for start in range(0, size, 50):
        numbers = range(start, min(start + 50, size))
        (path / "types" / f"t{start}.yaml").write_text(_types(f"Part{start}", numbers))
    for n in range(size // 2):
        (path / "functions" / f"f{n}.yaml").write_text(_functions(n))
        (path / "clients" / f"c{n}.yaml").write_text(_client(n, size))
    return path


def _types(part: str, numbers: range) -> str:
    attributes = (
        f"who: string, at: {part}, weight: double kg, seen: timestamp, tags: [string], level: optional int, "
        'price: "decimal(18,2)", speed: double km/h'
    )
    events = "".join(f"  Event{n}: {{{attributes}}}\n" for n in numbers)
    return f"types:\n  {part}: {{x: double m, y: double m, label: optional string}}\nevents:\n{events}"


def _functions(n: int) -> str:
    signature = "(a: double m, b: double m, limit: double m) -> boolean"
    return "functions:\n" + "".join(
        f'  f{n}x{k}: "{signature} = abs(a - b) * {k + 1} <= limit AND a > {k} m"\n' for k in range(8)
    )


def _client(n: int, size: int) -> str:
    head = f"clients:\n  client-{n}:\n    advertisements:\n      out: {{type: Event{n}}}\n    subscriptions:\n"
    return head + "".join(
        f"      s{k}: {{types: [Event{(n + k) % size}], "
        f"where: \"at.x < {k} m AND weight > {k} kg AND who LIKE 'p{k}%'\"}}\n"
        for k in range(8)
    )


def _variants(bench: Bench) -> list[Variant]:
    from situ.project.check import check_folder

    variants = []
    for size in (10, 20) if bench.quick else SIZES:
        folder = make_folder(bench.folder("project"), size)
        checked = check_folder(folder, {})
        assert checked.deployment is not None, checked.problems[:3]

        def work(folder: Path = folder, size: int = size) -> int:
            check_folder(folder, {})
            return size

        variants.append(Variant(name=f"{size} types, {size} files", work=work, point=float(size)))
    return variants


def _verdicts(medians: dict[str, float]) -> list[Verdict]:
    smallest, *_, largest = medians.values()
    seconds, spread = SIZES[-1] / largest, smallest / largest
    return [
        Verdict(what="seconds for 1,000 types and 1,000 files", value=seconds, goal="< 10", met=seconds < 10),
        Verdict(
            what="types a second, smallest folder against largest (linear: near 1)",
            value=spread,
            goal="≤ 2",
            met=spread <= 2,
        ),
    ]


SCENARIOS = [
    Scenario(
        name="folder",
        title="Checking a project folder, against its size",
        unit="types/s",
        about="Half the files hold eight functions each, half a client with eight filtered subscriptions; "
        "everything is read, parsed and checked.",
        variants=_variants,
        judge=_verdicts,
        repetitions=3,
    )
]
