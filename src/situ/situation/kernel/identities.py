"""Texts as whole numbers: identities, and what else of rows is text, are compared as codes.

A code is the place of a text in a list. New texts are put at its end; those that no row mentions any more are taken out
from time to time, and the rest numbered anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from situ.situation.kernel.table import Ints

NONE = -1
FEW = 64
"""So few texts are looked up one by one."""
MANY = 4
"""Texts that are not fewer than those known by this factor are looked up in columns."""


class Identities:
    """The texts of a state, and the code of each."""

    __slots__ = ("_codes", "_column", "texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts: list[str] = list(texts)
        self._codes: dict[str, int] = {text: code for code, text in enumerate(self.texts)}
        self._column: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def encode_all(self, columns: Sequence[pa.Array]) -> list[Ints]:
        """As :meth:`encode`, of several columns. Many texts are looked up at once, which costs least."""
        rows = sum(map(len, columns))
        if rows <= FEW:
            return [self.codes(each.to_pylist()) for each in columns]
        if MANY * rows < len(self.texts) or any(pa.types.is_dictionary(each.type) for each in columns):
            return [self.encode(each) for each in columns]
        whole = pa.concat_arrays(columns)
        codes: Ints = pc.index_in(whole, value_set=self._known()).fill_null(NONE).to_numpy().astype(np.int64)
        new = np.flatnonzero(codes == NONE)
        if len(new):
            codes[new] = self.encode(whole.take(pa.array(new)))
        return np.split(codes, np.cumsum([len(each) for each in columns[:-1]]))

    def encode(self, column: pa.Array) -> Ints:
        """The code of each text of a column, -1 for null."""
        encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        codes = self._found(encoded.dictionary)
        indices = encoded.indices
        if indices.null_count:
            places = indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
            codes = np.append(codes, NONE)
        else:
            places = indices.to_numpy(zero_copy_only=False)
        found: Ints = codes[places]
        return found

    def _found(self, texts: pa.Array) -> Ints:
        """The codes of different texts: looked up one by one if they are few against those that are known."""
        if MANY * len(texts) < len(self.texts):
            return self.codes(texts.to_pylist())
        codes: Ints = pc.index_in(texts, value_set=self._known()).fill_null(NONE).to_numpy().astype(np.int64)
        new = np.flatnonzero(codes == NONE)
        if len(new):
            codes[new] = self.codes(texts.take(pa.array(new)).to_pylist())
        return codes

    def _known(self) -> pa.Array:
        if self._column is None:
            self._column = pa.array(self.texts, pa.string())
        elif len(self._column) < len(self.texts):
            added = pa.array(self.texts[len(self._column) :], pa.string())
            self._column = pa.concat_arrays([self._column, added])
        return self._column

    def codes(self, texts: Sequence[str | None]) -> Ints:
        """The code of each text; new texts get one."""
        known = self._codes
        found = [known.get(text, NONE) for text in texts]  # type: ignore[arg-type]
        if NONE in found:
            for place, code in enumerate(found):
                text = texts[place]
                if code == NONE and text is not None:
                    found[place] = self._add(text)
        return np.array(found, np.int64)

    def _add(self, text: str) -> int:
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return code

    def decode(self, codes: Ints) -> list[str]:
        texts = self.texts
        return [texts[code] for code in codes.tolist()]

    def column(self, codes: Ints) -> pa.Array:
        """The texts as a column, null for -1."""
        known = pa.array(codes, mask=codes < 0) if (codes < 0).any() else pa.array(codes)
        return self._known().take(known)

    def without(self, unused: Ints) -> tuple[Identities, Ints]:
        """Without these codes; and the new code of each old one. Steps may add texts meanwhile."""
        texts = self.texts[:]
        kept = np.ones(len(texts), bool)
        kept[unused] = False
        renumbered = np.where(kept, np.cumsum(kept) - 1, NONE)
        return Identities(text for text, keep in zip(texts, kept.tolist(), strict=True) if keep), renumbered
