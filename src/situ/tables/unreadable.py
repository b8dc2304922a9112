"""Why rows cannot be had: what files and databases tell of, before anybody knows for which source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Unreadable(Exception):
    """The rows cannot be read, with what to do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class NoColumn(Exception):
    """A column that was asked for is not there, or several times; ``known`` are those that are."""

    def __init__(self, where: str, column: str, known: Sequence[str]) -> None:
        super().__init__(column)
        self.where = where
        self.column = column
        self.known = tuple(known)


def check_columns(where: str, wanted: Iterable[str], known: Sequence[str]) -> None:
    """Raise :class:`NoColumn` for the first that is not there, :class:`Unreadable` for one that is there twice."""
    for name in wanted:
        if name not in known:
            raise NoColumn(where, name, known)
        if known.count(name) > 1:
            raise Unreadable(f"it has several columns `{name}`", "Give each column a name of its own.")


def check_size(rows: int, most: int) -> None:
    if rows > most:
        remedy = "Tables are held in memory: read fewer rows, by a view or a smaller file."
        raise Unreadable(f"it has more than {most} rows", remedy)
