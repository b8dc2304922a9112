"""Seals: numbers that a client gets and cannot count by.

The key of an event has a number that its publisher counted, its position one of the log. Whoever saw some of them could
tell from the gaps how many events there were that it must not know of. So where there are scopes, what leaves for a
client has its numbers sealed by a secret of the zone, which routers and engines know and no client does. The same
number always becomes the same token, a token tells nothing of the number, and who has the secret can open it again.

A token is made as SIV does it: a tag of the plain text, and the plain text under a mask that is made of the tag. What
nobody sealed does not open, since its tag does not fit. Both are made by SHA-256, which Spark SQL has as well
(:mod:`situ.stages.seal_text`); tokens of before were made by BLAKE2, and still open.
"""

from __future__ import annotations

import re
import struct
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from binascii import b2a_base64
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b, sha256

from situ.event.lines import dead_client
from situ.lang.types.table import DEAD_LETTER, SITUATION

_TAG, _TEXT = 8, 16
_LENGTH = 32
"""Characters of a token: 24 bytes."""
_two = struct.Struct(">QQ")
_KEY = b'"situkey":"'
_POSITION = b',"situpos":"'
_TYPE = b'"type":"situ.'
_LETTER = b'"type":"%b"' % DEAD_LETTER.name.encode()
_SITUATION = b'"type":"%b' % SITUATION.name.encode()
_PLACE = re.compile(rb'"pos":[0-9]+')
_CAUSE = re.compile(rb'"id":"([0-9]{1,20})-([0-9]{1,20})","source":')
_MOST = (1 << 64) - 1
_SAFE = bytes.maketrans(b"+/", b"-_")


class Seal:
    """The seal of one zone; equal secrets make equal tokens."""

    __slots__ = ("_former", "mask_key", "tag_key")

    def __init__(self, secret: str) -> None:
        whole = blake2b(secret.encode(), digest_size=64, person=b"situ seal 2").digest()
        self.tag_key, self.mask_key = whole[:32], whole[32:]
        self._former = _FormerSeal(secret)

    def token(self, first: int, second: int) -> str:
        """What stands for two numbers."""
        text = _two.pack(first & _MOST, second & _MOST)
        tag = sha256(self.tag_key + text).digest()[:_TAG]
        return b2a_base64(tag + self._masked(tag, text), newline=False).translate(_SAFE).decode("ascii")

    def opened(self, token: str) -> tuple[int, int] | None:
        """The two numbers; None if this is no token of this seal."""
        if len(token) != _LENGTH or not token.isascii():
            return None
        try:
            whole = urlsafe_b64decode(token)
        except (NotBase64, ValueError):
            return None
        tag, masked = whole[:_TAG], whole[_TAG:]
        text = self._masked(tag, masked)
        if sha256(self.tag_key + text).digest()[:_TAG] != tag:
            return self._former.opened(tag, masked)
        first, second = _two.unpack(text)
        return first, second

    def _masked(self, tag: bytes, text: bytes) -> bytes:
        return _mixed(text, sha256(self.mask_key + tag).digest()[:_TEXT])

    def key(self, key: str) -> str:
        """The key of an event, ``client.incarnation.seq``, as clients see it: ``client.token``."""
        client, incarnation, seq = key.rsplit(".", 2)
        return f"{client}.{self.token(int(incarnation), int(seq))}"

    def line(self, line: bytes) -> bytes:
        """The line of an event as a client may have it, without its stamp: key, id and what it says of others' places
        are sealed, and it has no position. An id that the application gave is its own."""
        start = line.index(_KEY) + len(_KEY)
        end = line.index(b'"', start)
        client, incarnation, seq = line[start:end].rsplit(b".", 2)
        token = self.token(int(incarnation), int(seq)).encode()
        head, tail = line[:start], line[end:]
        if _TYPE in head:
            head, tail = self._own(head, tail, b".%b.%b" % (incarnation, seq), token)
        head = head.replace(b'"id":"%b-%b"' % (incarnation, seq), b'"id":"%b"' % token, 1)
        place = tail.rfind(_POSITION)
        if place >= 0 and tail.endswith(b'"}') and tail.find(b'"', place + len(_POSITION)) == len(tail) - 2:
            tail = tail[:place] + b"}"
        return b"%b%b.%b%b" % (head, client, token, tail)

    def _own(self, head: bytes, tail: bytes, numbers: bytes, token: bytes) -> tuple[bytes, bytes]:
        """What types of Situ's own say of other events: dead letters of one, situations of those that caused them.

        No text of a user can look like these: its quotes would be escaped.
        """
        if _LETTER in head:
            sealed = b"." + token
            return head.replace(numbers + b".", sealed + b".", 1), tail.replace(numbers + b'"', sealed + b'"', 1)
        if _SITUATION in head:
            tail = _PLACE.sub(b'"pos":0', tail)
            tail = _CAUSE.sub(
                lambda found: b'"id":"%b","source":' % self.token(int(found[1]), int(found[2])).encode(), tail
            )
        return head, tail

    def handed(self, lines: Iterable[bytes], client: str) -> list[bytes]:
        """Lines as this client may have them. Dead letters of its own events name keys that it gave itself."""
        own = b"%b%b." % (_KEY, dead_client(client).encode())
        return [each if own in each else self.line(each) for each in lines]


class _FormerSeal:
    """Opens the tokens that clients got before SHA-256 made them."""

    __slots__ = ("_mask", "_tag")

    def __init__(self, secret: str) -> None:
        whole = blake2b(secret.encode(), digest_size=64, person=b"situ seal").digest()
        self._tag, self._mask = whole[:32], whole[32:]

    def opened(self, tag: bytes, masked: bytes) -> tuple[int, int] | None:
        text = _mixed(masked, blake2b(tag, digest_size=_TEXT, key=self._mask).digest())
        if blake2b(text, digest_size=_TAG, key=self._tag).digest() != tag:
            return None
        first, second = _two.unpack(text)
        return first, second


def _mixed(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one) ^ int.from_bytes(other)).to_bytes(_TEXT)


@lru_cache(maxsize=16)
def seal_of(secret: str) -> Seal:
    """The seal with this secret, made once."""
    return Seal(secret)
