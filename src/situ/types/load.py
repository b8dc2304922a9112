"""The files of ``types/`` → the table of a project's types, with all problems of all files."""

from __future__ import annotations

from collections.abc import Iterable

from situ.documents import Document, Reader
from situ.errors import Problems
from situ.types.declare import TypeDeclaration, UnitDeclaration, declare_types, declare_units, is_nothing
from situ.types.resolve import resolve
from situ.types.table import Types


def load_types(
    documents: Iterable[Document],
    problems: Problems,
    *,
    also: tuple[Iterable[TypeDeclaration], Iterable[UnitDeclaration]] = ((), ()),
) -> Types:
    """Read what all these documents declare together. Where there are problems, the table lacks what they touch.

    ``also`` are types and units that files elsewhere declare for the same table.
    """
    read = Reader(problems)
    types, units = list(also[0]), list(also[1])
    for document in documents:
        if document.root is not None and is_nothing(document.root):
            problems.extend(document.problems)
            continue
        fields = read.document(document, optional=("types", "events", "units"))
        if fields is not None:
            types.extend(declare_types(fields))
            units.extend(declare_units(fields))
    return resolve(types, units, problems)
