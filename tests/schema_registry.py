"""A schema registry for tests: an HTTP server with the calls of Confluent's that are used, schemas in memory."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class RegistryServer:
    """Schemas by id, in the order in which they were registered; equal ones have one id."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.asked: list[str] = []
        """What was asked for, in order."""
        self.fails = False
        """Whether it answers with an error to everything."""
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def register(self, subject: str, schema: dict[str, Any]) -> int:
        if schema not in self.schemas:
            self.schemas.append(schema)
        id = self.schemas.index(schema) + 1
        versions = self.subjects.setdefault(subject, [])
        if id not in versions:
            versions.append(id)
        return id

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.asked.append(f"{method} {path}")
        if self.fails:
            return 500, {"error_code": 50001, "message": "the store is away"}
        if method == "POST" and (found := re.fullmatch(r"/subjects/([^/]+)/versions", path)):
            schema = {"schemaType": "AVRO", **body}
            if schema["schemaType"] == "AVRO" and not _is_json(schema["schema"]):
                return 422, {"error_code": 42201, "message": "Invalid schema"}
            return 200, {"id": self.register(found[1], schema)}
        if found := re.fullmatch(r"/schemas/ids/([0-9]+)(\?format=serialized)?", path):
            id = int(found[1])
            if not 0 < id <= len(self.schemas):
                return 404, {"error_code": 40403, "message": "Schema not found"}
            schema = self.schemas[id - 1]
            return 200, {name: each for name, each in schema.items() if (name, each) != ("schemaType", "AVRO")}
        if found := re.fullmatch(r"/subjects/([^/]+)/versions/([0-9]+)", path):
            versions = self.subjects.get(found[1], [])
            if not 0 < int(found[2]) <= len(versions):
                return 404, {"error_code": 40401, "message": "Subject not found"}
            id = versions[int(found[2]) - 1]
            return 200, {"subject": found[1], "version": int(found[2]), "id": id, **self.schemas[id - 1]}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@contextmanager
def registry_server() -> Iterator[RegistryServer]:
    registry = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(size)) if size else None
            status, answer = registry.answer(self.command, self.path, body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _serve  # noqa: N815 - named by the library

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
