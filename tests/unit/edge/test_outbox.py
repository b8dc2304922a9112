"""What waits to be published: in order, and how far that is."""

from __future__ import annotations

import asyncio

from situ.edge.detect import Outbox


def test_what_was_put_is_settled_when_it_is_published_whatever_is_put_meanwhile() -> None:
    async def run() -> None:
        outbox: Outbox[int] = Outbox(64)
        may, published = asyncio.Semaphore(0), []

        async def publish(message: int) -> None:
            await may.acquire()
            published.append(message)

        await outbox.settled()
        await outbox.put(1)
        await outbox.put(2)
        working = asyncio.create_task(outbox.publish_on(publish))
        settled = asyncio.create_task(outbox.settled())
        await asyncio.sleep(0)
        await outbox.put(3)
        may.release()
        await asyncio.sleep(0.01)
        assert not settled.done()
        may.release()
        await settled
        assert published == [1, 2]
        later = asyncio.create_task(outbox.settled())
        may.release()
        await later
        assert published == [1, 2, 3]
        working.cancel()

    asyncio.run(run())


def test_who_waits_no_more_is_forgotten() -> None:
    async def run() -> None:
        outbox: Outbox[int] = Outbox(64)
        published: list[int] = []

        async def publish(message: int) -> None:
            published.append(message)

        await outbox.put(1)
        given_up = asyncio.create_task(outbox.settled())
        await asyncio.sleep(0)
        given_up.cancel()
        working = asyncio.create_task(outbox.publish_on(publish))
        await outbox.settled()
        assert published == [1]
        working.cancel()

    asyncio.run(run())


def test_while_it_is_full_whoever_has_more_waits() -> None:
    async def run() -> None:
        outbox: Outbox[int] = Outbox(1)
        await outbox.put(1)
        second = asyncio.create_task(outbox.put(2))
        await asyncio.sleep(0.01)
        assert not second.done()
        second.cancel()

    asyncio.run(run())
