"""What is no HTTP request is answered in the envelope too, by the protocol itself."""

import json
import socket
import uuid

import httpx
import pytest


def send(client: httpx.Client, data: bytes) -> tuple[bytes, dict[str, str], bytes]:
    """Everything that comes back until the service hangs up: status line, headers, body."""
    with socket.create_connection((client.base_url.host, client.base_url.port or 80), timeout=5) as wire:
        wire.sendall(data)
        got = b""
        while chunk := wire.recv(4096):
            got += chunk
    head, _, body = got.partition(b"\r\n\r\n")
    status, *lines = head.split(b"\r\n")
    pairs = [line.decode().partition(": ") for line in lines]
    return status, {name.lower(): value for name, _, value in pairs}, body


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"POST /evidence HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n", id="length-of-letters"),
        pytest.param(b"GET /recipes?q=\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n", id="raw-byte-in-the-address"),
        pytest.param(b"GET /recipes HTTP/1.1\r\n\r\n", id="no-host"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", id="tls"),
    ],
)
def test_what_the_parser_refuses_has_the_envelope(client: httpx.Client, data: bytes) -> None:
    status, headers, body = send(client, data)
    problem = json.loads(body)
    assert status == b"HTTP/1.1 400 Bad Request"
    assert list(problem) == ["code", "message", "details", "requestId", "timestamp", "retryable"]
    assert (problem["code"], problem["retryable"]) == ("INVALID_REQUEST", False)
    assert problem["message"] == "expected a request of HTTP/1.1, got something else"
    assert problem["requestId"] == headers["x-request-id"] == str(uuid.UUID(problem["requestId"]))
    assert (headers["content-type"], headers["cache-control"], headers["connection"]) == (
        "application/json",
        "no-store",
        "close",
    )
    assert (headers["x-content-type-options"], headers["x-api-version"]) == ("nosniff", "v1")


def test_a_body_that_breaks_its_framing_ends_the_connection(client: httpx.Client) -> None:
    """The answer of the route has not begun, so the envelope can still be sent."""
    head = b"POST /verify HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    status, _, body = send(client, head + b"zz\r\nnonsense\r\n")
    assert status == b"HTTP/1.1 400 Bad Request"
    assert json.loads(body)["code"] == "INVALID_REQUEST"
