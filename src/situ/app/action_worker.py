"""Does what policies ask for that is no event: webhooks, lines of the action log, policies deleted or suspended.

`ActionLog` is ``.situ/logs/actions.log``. `ActionResolver` finds in the registry what a request asks for.
`ActionWorker` reads requests from the root log, keeps them in the `ActionQueue` and does each at least once;
`RetrySettings` says how long and how often.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from situ.app.action_queue import WAITING, ActionQueue, ActionRequest, is_key
from situ.app.webhook import WebhookResponse, host_of, send_request
from situ.bus.event_loop import end
from situ.bus.failure_log import InternalErrors
from situ.bus.folder_lock import private_folder
from situ.bus.interface import Bus
from situ.event.instants import instant_at, read_instant
from situ.event.lines import decode_line, stored_lines
from situ.event.message import StoredMessage, position
from situ.event.subjects import MIXED, BusNames
from situ.lang.catalogue import ACTION_FAILED, ACTION_LACKS, ACTION_NOT_DECLARED
from situ.lang.problems import Problem, SituError
from situ.lang.records import replace
from situ.lang.types.table import ACTION
from situ.model import Deployment
from situ.policies.actions.action_events import digest_of
from situ.policies.actions.invocations import ActionInvocation, invocation_of
from situ.policies.actions.model import ActionStep, DeclaredActions, references_of
from situ.policies.actions.resolve import steps_of
from situ.policies.actions.templates import TemplateFacts
from situ.policies.model import PolicyAction
from situ.project.state_folder import LOGS
from situ.registry import Registry

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The action log: each line once, whatever breaks; a few files of bounded size. A line ends with the key of its request,
# and counts only if it is whole. So a request that is still kept when a process begins is either in the file and done,
# or it is not.

ACTION_LOG = LOGS / "actions.log"

_SIZE = 4 * 1024 * 1024
_FILES = 4


class ActionLog:
    """The file of one project; one process writes it."""

    def __init__(self, folder: Path, *, size: int = _SIZE) -> None:
        self._file = folder / ACTION_LOG
        self._size = size

    def mend(self) -> None:
        """Take away what a process that was killed did not write to the end."""
        try:
            content = self._file.read_bytes()
        except FileNotFoundError:
            return
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self._file, whole)

    def holds(self, keys: Iterable[str]) -> frozenset[str]:
        """Which of these keys have their lines in it."""
        wanted = frozenset(keys)
        return wanted & frozenset(self._keys()) if wanted else frozenset()

    def write(self, time: str, level: str, policy: str, text: str, key: str) -> None:
        """The text is one line already; so no line can look like two."""
        private_folder(self._file.parent)
        self._turn()
        line = f"{time} {level.upper():7} {policy}: {text} [{key}]\n".encode()
        file = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            written = os.write(file, line)
        finally:
            os.close(file)
        if written < len(line):
            self.mend()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._file))

    def _turn(self) -> None:
        if not self._file.exists() or self._file.stat().st_size < self._size:
            return
        files = list(self._files())
        for older, newer in zip(reversed(files), [*reversed(files)][1:], strict=False):
            if newer.exists():
                newer.replace(older)

    def _files(self) -> Iterator[Path]:
        """Newest first."""
        yield self._file
        for number in range(1, _FILES):
            yield self._file.with_name(f"{self._file.name}.{number}")

    def _keys(self) -> Iterator[str]:
        for file in self._files():
            if not file.exists():
                continue
            with file.open("rb") as lines:
                for line in lines:
                    if line.endswith(b"]\n"):
                        yield line[line.rfind(b"[") + 1 : -2].decode("utf-8", "replace")


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# From a request to what is to be done: the step it names, as it was declared when it was asked for, with its facts.
#
# It is looked up in the registry and never taken from the event: otherwise whoever can publish could have a run call an
# address that no administrator wrote down, or reveal values of its environment.

_LOOKED_BACK = 1000
"""Changes of the registry among which the one is looked for that made a step another."""
_REMEMBERED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedAction:
    """What to do, and where it goes to as people may see it: without what the environment says."""

    deed: ActionInvocation
    shown: str


class ActionResolver:
    """Finds what requests ask for; versions that were looked up are remembered."""

    def __init__(self, registry: Registry, environment: Mapping[str, str]) -> None:
        self._registry = registry
        self._environment = environment
        self._versions: dict[int, Deployment] = {}

    def resolve(self, request: ActionRequest) -> ResolvedAction:
        """Asks the registry; :class:`SituError` with why it cannot be done."""
        action, actions = self._declared(request)
        number, place = int(request.about["number"]), int(request.about["place"])
        step = steps_of(action, actions)[place]
        facts = facts_of(request, self._environment)
        as_written = replace(facts, environment={name: f"${{{name}}}" for name in _environment_of(step)})
        lacking = [name for name in _environment_of(step) if name not in self._environment]
        if lacking:
            raise SituError(
                ACTION_LACKS(action=request.action, policy=request.policy, name=lacking[0], key=request.key)
            )
        said = situation_of(request)
        found = invocation_of(action, number, place, actions, facts, said)
        if found.verb in ("delete policy", "suspend policy"):
            return ResolvedAction(deed=found, shown=found.target)  # a name, which the environment may give
        return ResolvedAction(deed=found, shown=invocation_of(action, number, place, actions, as_written, said).target)

    def _declared(self, request: ActionRequest) -> tuple[PolicyAction, DeclaredActions]:
        for deployment in self._candidates(request.policy):
            found = _action_in(deployment, request)
            if found is not None:
                return found, deployment.actions
        raise SituError(ACTION_NOT_DECLARED(action=request.action, policy=request.policy, key=request.key))

    def _candidates(self, policy: str) -> Iterator[Deployment]:
        """What is in force, then what was before policy or actions were changed, the latest first."""
        yield self._registry.current()
        versions = {
            each.deployment - 1
            for each in self._registry.changes(_LOOKED_BACK)
            if each.key.kind == "action" or each.key == ("policy", policy)
        }
        for version in sorted(versions - {0}, reverse=True):
            if version not in self._versions:
                if len(self._versions) >= _REMEMBERED:
                    self._versions.clear()
                self._versions[version] = self._registry.at(version)
            yield self._versions[version]


def facts_of(request: ActionRequest, environment: Mapping[str, str]) -> TemplateFacts:
    """What templates can refer to, as it was known when the situation was detected."""
    about = request.about
    time = read_instant(request.time)
    return TemplateFacts(
        policy=request.policy,
        situation=request.situation,
        detection=str(about["detection"]),
        time=None if time is None else instant_at(time),
        bindings={each["alias"]: each["id"] for each in about["bindings"]},
        attributes=json.loads(about["attributes"]),
        environment=environment,
    )


def situation_of(request: ActionRequest) -> dict[str, Any]:
    """What is sent where an action does not say what."""
    about = request.about
    known = json.loads(about["attributes"])
    return {
        "policy": request.policy,
        "situation": request.situation,
        "detection": about["detection"],
        "time": request.time,
        "bindings": {
            each["alias"]: {
                "concept": each["concept"],
                "id": each["id"],
                "attributes": {name: value for name, value in known.get(each["alias"], {}).items() if name != "id"},
            }
            for each in about["bindings"]
        },
    }


def _action_in(deployment: Deployment, request: ActionRequest) -> PolicyAction | None:
    policy = deployment.policies.get(request.policy)
    number, place = request.about["number"], request.about["place"]
    if policy is None or number >= len(policy.actions):
        return None
    action = policy.actions[number]
    steps = steps_of(action, deployment.actions)
    return action if place < len(steps) and digest_of(steps[place], action) == request.about["digest"] else None


def _environment_of(step: ActionStep) -> list[str]:
    return [each.name[1:] for each in references_of(step) if each.is_environment]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The worker. Requests are kept on disk before the log counts as read, and removed when they are done: whatever is
# killed in between, every request is done at least once, with the same key each time. Those of one situation are done
# one after the other. An address that does not answer holds up no other: the requests under way to one address are
# bounded, and one that waits for its next try takes no place. What cannot be done stays in the queue as failed.

log = logging.getLogger("situ.host.acting")

_MARK = ACTION.name.encode()
_TROUBLE = 2.0  # seconds to wait when the bus, the registry or the disk does not answer
_PASSING = ("D104", "D105")  # the database of the registry does not answer, or is busy
_EVENT_VERBS = ("publish", "notify", "command")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """How requests are done; times in seconds."""

    glance: float = 0.2
    """Between looks at the log."""
    timeout: float = 10.0
    """For one request to an address, from connecting to its answer."""
    attempts: int = 12
    pause: float = 1.0
    """Before the second attempt; twice as long each time, up to the longest."""
    longest: float = 60.0
    at_once: int = 32
    to_one_host: int = 4
    most_waiting: int = 10_000
    """More stay in the log until some are done."""

    def before(self, attempt: int) -> float:
        """Seconds before the attempt of this number; the first is 1."""
        return float(min(self.pause * 2 ** min(attempt - 2, 30), self.longest))


@dataclass(slots=True)
class ActionCounts:
    """Since the start."""

    done: int = 0
    failed: int = 0


@dataclass(slots=True)
class _Line:
    """The requests of one situation, in order, and whoever does them."""

    requests: deque[ActionRequest] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None


class ActionWorker:
    """Does what the policies of one project ask for, until its :meth:`run` is cancelled."""

    def __init__(
        self,
        bus: Bus,
        registry: Registry,
        folder: Path,
        *,
        environment: Mapping[str, str] = os.environ,
        manner: RetrySettings | None = None,
    ) -> None:
        self._bus = bus
        self._registry = registry
        self._manner = manner or RetrySettings()
        self._asked = ActionQueue(folder)
        self._log = ActionLog(folder)
        self._resolving = ActionResolver(registry, environment)
        self._reached = 0
        self._lines: dict[str, _Line] = {}
        self._waiting = 0
        self._hosts: dict[str, asyncio.Semaphore] = {}
        self._places = asyncio.Semaphore(self._manner.at_once)
        self._turn = asyncio.Lock()
        """Of whoever writes the log, or changes policies."""
        self.counts = ActionCounts()
        self.mistakes = InternalErrors(log)

    async def start(self) -> None:
        """Take up what a process before this one left. What is asked for from now on will be done."""
        last = (await self._bus.state(self._stream)).last
        reached = await asyncio.to_thread(self._asked.reached)
        # A log that is shorter than it was is another one.
        self._reached = last if reached is None or reached > last else reached
        await asyncio.to_thread(self._asked.reach, self._reached)
        self._put(await asyncio.to_thread(self._left))

    def _left(self) -> list[ActionRequest]:
        self._log.mend()
        self._asked.taken_again()
        left = self._asked.all(WAITING)
        logged = self._log.holds(each.key for each in left if each.verb == "log")
        for key in logged:
            self._asked.drop(key)
        return [each for each in left if each.key not in logged]

    async def run(self) -> None:
        """For ever."""
        try:
            while True:
                try:
                    await self._take()
                except (SituError, OSError) as error:  # a bus that is away comes back, a full disk is tidied
                    log.warning("Actions wait: %s", error)
                    await asyncio.sleep(_TROUBLE)
                except Exception as error:  # noqa: BLE001 - what was asked for since is taken at the next look
                    self.mistakes.note(error, "actions take")
                    await asyncio.sleep(_TROUBLE)
                await asyncio.sleep(self._manner.glance)
        finally:
            tasks = [line.task for line in self._lines.values() if line.task is not None]
            await end(tasks)

    # ── taking ──

    @property
    def _stream(self) -> str:
        return BusNames(self._bus.zone).root_stream

    async def _take(self) -> None:
        self._put(await asyncio.to_thread(self._asked.taken_again))
        last = (await self._bus.state(self._stream)).last
        room = self._manner.most_waiting - self._waiting
        if last <= self._reached or room <= 0:
            return
        names = BusNames(self._bus.zone)
        subjects = (names.root("*", ACTION.name), names.root("*", MIXED))
        found: list[ActionRequest] = []
        async with aclosing(self._bus.read(self._stream, self._reached + 1, last, subjects=subjects)) as messages:
            async for stored in messages:
                found += self._requests_in(stored)
                if len(found) >= room:
                    last = stored.seq
                    break
        await asyncio.to_thread(self._keep, found, last)
        self._put(found)

    def _requests_in(self, stored: StoredMessage) -> list[ActionRequest]:
        """What a message asks for; one that cannot be read asks for nothing, and does not hold up the others."""
        try:
            return requests_in(stored)
        except Exception as error:  # noqa: BLE001 - of this message, and of no other
            self.mistakes.note(error, "actions read")
            return []

    def _keep(self, found: Iterable[ActionRequest], reached: int) -> None:
        """Only what is kept here counts as read, and nothing is done before it is."""
        self._asked.take(found, reached)
        self._reached = reached

    def _put(self, found: Iterable[ActionRequest]) -> None:
        for each in found:
            line = self._lines.setdefault(each.situation, _Line())
            line.requests.append(each)
            self._waiting += 1
            if line.task is None:
                line.task = asyncio.create_task(self._work(each.situation, line))

    # ── doing ──

    async def _work(self, situation: str, line: _Line) -> None:
        while line.requests:
            request = line.requests[0]
            try:
                await self._settle(request)
            except OSError as error:
                log.warning("%s: what came of it cannot be kept: %s", request.key, error)
                await asyncio.sleep(_TROUBLE)
                continue
            except Exception as error:  # noqa: BLE001 - of this request: the next is another matter
                await self._give_up(request, self.mistakes.told(error, "actions settle"))
            line.requests.popleft()
            self._waiting -= 1
        del self._lines[situation]

    async def _give_up(self, request: ActionRequest, problem: Problem) -> None:
        """It is kept with those that failed, where it can be looked at and tried again."""
        with suppress(SituError), self.mistakes.noted("actions settle"):
            failed = request.tried(_failed(request, request.target, problem.message.rstrip(".")), request.target, 1)
            await asyncio.to_thread(self._asked.fail, failed)
            self.counts.failed += 1

    async def _settle(self, request: ActionRequest) -> None:
        """Try until it is done, given up, or dropped by somebody."""
        attempt = 0
        while await asyncio.to_thread(self._asked.is_waiting, request.key):
            attempt += 1
            problem, again, target = await self._attempt(request)
            if problem is None:
                await asyncio.to_thread(self._asked.drop, request.key)
                self.counts.done += 1
                return
            request = request.tried(problem, target, attempt)
            if not again or attempt >= self._manner.attempts:
                await asyncio.to_thread(self._asked.fail, request)
                self.counts.failed += 1
                log.error("%s %s (%s)", problem.code.code, problem.message, request.key)
                return
            if attempt == 1:
                log.warning("%s %s It is tried again. (%s)", problem.code.code, problem.message, request.key)
            await asyncio.to_thread(self._asked.note, request)
            await asyncio.sleep(self._manner.before(attempt + 1))

    async def _attempt(self, request: ActionRequest) -> tuple[Problem | None, bool, str]:
        """Why it was not done, whether another attempt may do, and where it went to."""
        try:
            resolved = await asyncio.to_thread(self._resolving.resolve, request)
            answer = await self._do(request, resolved)
        except SituError as error:
            return error.problems[0], error.code in _PASSING, request.target
        except (ValueError, TypeError, LookupError) as error:
            log.exception("%s cannot be understood", request.key)
            return _failed(request, "what was asked", f"makes no sense ({type(error).__name__})"), False, request.target
        except Exception as error:  # noqa: BLE001 - of this request: the next is another matter
            reason = self.mistakes.told(error, "actions do").message.rstrip(".")
            return _failed(request, "what was asked", reason), False, request.target
        if not answer.reason:
            return None, False, resolved.shown
        return _failed(request, resolved.shown, answer.reason), answer.again, resolved.shown

    async def _do(self, request: ActionRequest, resolved: ResolvedAction) -> WebhookResponse:
        deed = resolved.deed
        if deed.verb == "webhook":
            async with self._host(deed), self._places:
                return await send_request(deed, self._manner.timeout)
        async with self._turn:
            if deed.verb == "log":
                await asyncio.to_thread(
                    self._log.write, request.time, deed.level, request.policy, str(deed.body), request.key
                )
            elif deed.verb in _EVENT_VERBS:  # it could not be rendered where it was detected, and can now
                return WebhookResponse("is an event, and events come from engines only")
            else:
                await asyncio.to_thread(self._change_policy, deed, request)
        return WebhookResponse()

    def _host(self, deed: ActionInvocation) -> asyncio.Semaphore:
        return self._hosts.setdefault(host_of(deed.target), asyncio.Semaphore(self._manner.to_one_host))

    def _change_policy(self, deed: ActionInvocation, request: ActionRequest) -> None:
        """One that the folder declares is suspended instead of deleted: the folder would bring it back."""
        who, reason = f"policy {request.policy}", f"{deed.verb}, situation {request.situation}"
        names = {each.name: each.origin for each in self._registry.objects("policy")}
        if deed.verb == "delete policy" and deed.target not in names:
            return  # gone is what it was to be
        if deed.verb == "delete policy" and names[deed.target] != "folder":
            self._registry.remove("policy", deed.target, who=who, reason=reason)
        else:
            self._registry.suspend(deed.target, who=who, reason=reason)


def _failed(request: ActionRequest, target: str, reason: str) -> Problem:
    remedy = f"When that is put right, run `situ actions retry {request.key}`."
    return ACTION_FAILED(
        action=request.action, policy=request.policy, target=target or request.verb, reason=reason, remedy=remedy
    )


def requests_in(stored: StoredMessage) -> list[ActionRequest]:
    """What a message of the root log asks for. Only policies ask: engines let nobody else publish these events."""
    if _MARK not in stored.body:
        return []
    found = []
    for place, line in enumerate(stored_lines(stored)):
        if _MARK not in line:
            continue
        row = decode_line(line, pos=position(stored.seq, place))
        if row.type == ACTION.name:
            with suppress(msgspec.DecodeError):
                found.append(
                    ActionRequest(key=row.id, pos=position(stored.seq, place), about=msgspec.json.decode(row.data))
                )
    unfit = [each.key for each in found if not is_key(each.key)]
    for key in unfit:
        log.error("a request has a key that is none: %r", key[:100])
    return [each for each in found if each.key not in unfit]
