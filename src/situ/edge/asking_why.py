"""What a client asks its router about visibility: why an event is seen by a subscription, or is not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from situ.edge.session import Session
from situ.overlay.messages import Explain, ExplainAck


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyVisible:
    """The answer, in words and as data: all of it, or what this client may know."""

    visible: bool
    text: str
    answer: Mapping[str, Any]


async def ask_why(session: Session, event: str, to: str, ad: str, sample: str | Mapping[str, Any]) -> WhyVisible:
    """Of an event, or of a sample of what an advertisement would publish; the subscription is ``client/name``."""
    text = sample if isinstance(sample, str) else json.dumps(sample)
    answer = await session.ask(Explain(req=session.request(), event=event, to=to, ad=ad, sample=text))
    assert isinstance(answer, ExplainAck)
    return WhyVisible(visible=answer.visible, text=answer.text, answer=json.loads(answer.answer))
