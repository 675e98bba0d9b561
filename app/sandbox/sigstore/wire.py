"""The HTTP wire of the sandbox Sigstore: bounded requests in, answers out, nothing left open after closing."""

import json
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from app.sandbox.sigstore.request import bad_request

logger = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 1 << 20
READ_TIMEOUT_SECONDS: Final = 30.0
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """One request, read whole; header names are lower case."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Mapping[str, Any]:
        """The body as a JSON object; refuses anything else."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError) as err:
            raise bad_request("expected a JSON body") from err
        if not isinstance(value, Mapping):
            raise bad_request("expected a JSON object")
        return value

    def form(self) -> Mapping[str, str]:
        """The body as form fields; the first value of each counts."""
        return {name: values[0] for name, values in parse_qs(self.body.decode("utf-8", "replace")).items()}


@dataclass(frozen=True, slots=True)
class Response:
    """One answer."""

    status: HTTPStatus
    body: bytes
    media_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


class LoopbackServer(ThreadingHTTPServer):
    """A threading server that closes what is open when it closes, so that no thread and no socket outlives it."""

    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handle: Callable[[Request], Response]) -> None:
        self.handle_request_of = handle
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  socketserver's signature
        """Remember the connection while its thread lives."""
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401  socketserver's signature
        """Forget a connection that ended."""
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002  socketserver's signature
        """A client that went away is no news."""
        logger.debug("connection from %s ended early", client_address)

    def server_close(self) -> None:
        """End every connection and wait for its thread."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        super().server_close()


class _Handler(BaseHTTPRequestHandler):
    """Reads one bounded request at a time and writes its answer; connections are kept alive."""

    protocol_version = "HTTP/1.1"
    server_version = "aicr-sandbox-sigstore"
    sys_version = ""
    timeout = READ_TIMEOUT_SECONDS
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer a GET."""
        self._answer(b"")

    def do_POST(self) -> None:
        """Answer a POST once its whole body is here."""
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or len(length) > len(str(MAX_BODY_BYTES)) or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            self._write(Response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b'{"message": "expected at most 1 MiB"}'))
            return
        self._answer(self.rfile.read(int(length)))

    def _answer(self, body: bytes) -> None:
        split = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        server = self.server
        assert isinstance(server, LoopbackServer)  # noqa: S101  set by the only server that uses this handler
        request = Request(self.command, split.path, parse_qs(split.query), headers, body)
        try:
            response = server.handle_request_of(request)
        except Exception:
            logger.exception("%s %s failed", request.method, request.path)
            response = Response(HTTPStatus.INTERNAL_SERVER_ERROR, b'{"code": 500, "message": "internal error"}')
        self._write(response)

    def _write(self, response: Response) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.media_type)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in response.headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(response.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class names it so
        """Requests are debug noise here, and must not reach a terminal."""
        logger.debug(format, *args)
