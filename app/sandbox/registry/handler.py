"""The HTTP side of the sandbox registry: the distribution API's routes, one method each."""

import json
import re
import socket
import ssl
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qs, unquote, urlsplit

from app.adapters.oci.manifest import INDEX_TYPE
from app.sandbox.registry import serving
from app.sandbox.registry.auth import AuthMode
from app.sandbox.registry.modes import Behaviour, Hostility
from app.sandbox.registry.store import digest_of, parse_object

if TYPE_CHECKING:
    from app.sandbox.registry.server import SandboxRegistry

_MAX_BODY_BYTES = 128 << 20
_ROUTE = re.compile(
    r"/v2/(?P<name>[a-z0-9._/-]+?)/(?P<kind>blobs/uploads|blobs|manifests|referrers|tags)(?:/(?P<rest>[^/]*))?/?"
)


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    authorization: str | None


class LoopbackServer(ThreadingHTTPServer):
    """A threaded server on 127.0.0.1 that drops its connections when it is closed."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        handler: type["RegistryHandler"],
        registry: "SandboxRegistry",
        tls: ssl.SSLContext | None,
    ) -> None:
        self.registry = registry
        self._open: set[socket.socket] = set()
        super().__init__(address, handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def server_bind(self) -> None:
        """Bind without the reverse lookup of the base class."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, object]:
        """Remember each connection."""
        connection, address = super().get_request()
        self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Forget a connection that ended."""
        self._open.discard(cast("socket.socket", request))
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Close the listener and every connection."""
        super().server_close()
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no event."""


class RegistryHandler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: LoopbackServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Requests are kept in `SandboxRegistry.log` instead."""

    @property
    def registry(self) -> "SandboxRegistry":
        """The registry being served."""
        return self.server.registry

    # --- routing -------------------------------------------------------------------------------------

    def dispatch(self) -> None:
        """Log the request, check who asks, hand it to its route."""
        authorization = self.headers.get("Authorization")
        self.registry.log.append(Seen(self.command, self.path, authorization))
        body = self._read_body()
        if body is None:
            self.fail(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "SIZE_INVALID")
            return
        parts = urlsplit(self.path)
        if parts.path == "/token":
            self._token(authorization, parts.query)
            return
        if parts.path in {"/v2", "/v2/"}:
            self._base(authorization)
            return
        match = _ROUTE.fullmatch(unquote(parts.path))
        if match is None:
            self.fail(HTTPStatus.NOT_FOUND, "")
            return
        name, kind, rest = match["name"], match["kind"], match["rest"] or ""
        behaviour = self.registry.behaviour(name)
        action = "pull" if self.command in {"GET", "HEAD"} else "push"
        if behaviour is not None and action == "pull" and serving.disturb(self, behaviour, name):
            return
        if not self.registry.gatekeeper.admits(authorization, name, action):
            self.challenge(self.registry.gatekeeper.challenge(self.registry.url, name, action))
            return
        route = getattr(self, f"_{kind.replace('blobs/uploads', 'uploads')}")
        route(name, rest, parts.query, body, behaviour)

    def _base(self, authorization: str | None) -> None:
        auth = self.registry.gatekeeper.auth
        if auth.mode is not AuthMode.NONE and not authorization:
            self.challenge(self.registry.gatekeeper.challenge(self.registry.url, "", "pull"))
            return
        self.reply(HTTPStatus.OK, b"{}", {"Content-Type": "application/json"})

    def _token(self, authorization: str | None, query: str) -> None:
        token = self.registry.gatekeeper.issue(authorization, query)
        if token is None:
            self.fail(HTTPStatus.UNAUTHORIZED, "UNAUTHORIZED")
            return
        document = {"token": token, "expires_in": self.registry.gatekeeper.auth.expires_in_seconds}
        self.reply(HTTPStatus.OK, json.dumps(document).encode(), {"Content-Type": "application/json"})

    # --- content -------------------------------------------------------------------------------------

    def _manifests(self, name: str, reference: str, _query: str, body: bytes, behaviour: Behaviour | None) -> None:
        store = self.registry.store
        if self.command == "PUT":
            self._put_manifest(name, reference, body)
        elif self.command == "DELETE":
            self._delete(name, "manifests", reference, "MANIFEST_UNKNOWN")
        else:
            found = store.manifest(name, reference)
            if behaviour is not None and behaviour.mode is Hostility.PLANTED_TAG and reference.startswith("sha256-"):
                found = serving.planted_index(store, name)
            if found is None:
                self.fail(HTTPStatus.NOT_FOUND, "MANIFEST_UNKNOWN" if store.knows(name) else "NAME_UNKNOWN")
                return
            digest, media_type, data = found
            serving.content(self, behaviour, kind="manifest", digest=digest, media_type=media_type, data=data)

    def _put_manifest(self, name: str, reference: str, body: bytes) -> None:
        store = self.registry.store
        document = parse_object(body)
        digest = digest_of(body)
        if not document or (reference.startswith("sha256:") and reference != digest):
            self.fail(HTTPStatus.BAD_REQUEST, "MANIFEST_INVALID" if not document else "DIGEST_INVALID")
            return
        media_type = self.headers.get("Content-Type") or str(document.get("mediaType"))
        if media_type != INDEX_TYPE:
            layers = document.get("layers")
            wanted = [*(layers if isinstance(layers, list) else []), document.get("config")]
            for part in wanted:
                blob = part.get("digest") if isinstance(part, dict) else None
                if not isinstance(blob, str) or store.blob(name, blob) is None:
                    self.fail(HTTPStatus.BAD_REQUEST, "MANIFEST_BLOB_UNKNOWN")
                    return
        store.put_manifest(name, reference, media_type, body)
        headers = {"Location": f"/v2/{name}/manifests/{digest}", "Docker-Content-Digest": digest}
        subject = document.get("subject")
        if self.registry.referrers_api and isinstance(subject, dict):
            headers["OCI-Subject"] = str(subject.get("digest"))
        self.reply(HTTPStatus.CREATED, b"", headers)

    def _blobs(self, name: str, digest: str, _query: str, _body: bytes, behaviour: Behaviour | None) -> None:
        if self.command == "DELETE":
            self._delete(name, "blobs", digest, "BLOB_UNKNOWN")
            return
        data = self.registry.store.blob(name, digest)
        if data is None:
            self.fail(HTTPStatus.NOT_FOUND, "BLOB_UNKNOWN")
            return
        media_type = "application/octet-stream"
        serving.content(self, behaviour, kind="blob", digest=digest, media_type=media_type, data=data)

    def _uploads(self, name: str, upload: str, query: str, body: bytes, _behaviour: Behaviour | None) -> None:
        store = self.registry.store
        asked = parse_qs(query)
        if self.command == "POST":
            mount, source = asked.get("mount", [""])[0], asked.get("from", [""])[0]
            if mount and source and store.mount(name, mount, source):
                self._created(name, mount)
                return
            if "digest" in asked:
                self._finish(name, body, asked["digest"][0])
                return
            self._accepted(name, store.open_upload(name), 0)
            return
        size = store.append(name, upload, body)
        if size is None:
            self.fail(HTTPStatus.NOT_FOUND, "BLOB_UPLOAD_UNKNOWN")
        elif self.command == "PUT":
            self._finish(name, store.close_upload(name, upload) or b"", asked.get("digest", [""])[0])
        elif self.command == "DELETE":
            store.close_upload(name, upload)
            self.reply(HTTPStatus.NO_CONTENT, b"", {})
        elif self.command == "GET":
            self.reply(HTTPStatus.NO_CONTENT, b"", {"Range": f"0-{max(0, size - 1)}"})
        else:
            self._accepted(name, upload, size)

    def _finish(self, name: str, data: bytes, digest: str) -> None:
        if digest_of(data) != digest:
            self.fail(HTTPStatus.BAD_REQUEST, "DIGEST_INVALID")
            return
        self.registry.store.put_blob(name, data)
        self._created(name, digest)

    def _created(self, name: str, digest: str) -> None:
        headers = {"Location": f"/v2/{name}/blobs/{digest}", "Docker-Content-Digest": digest}
        self.reply(HTTPStatus.CREATED, b"", headers)

    def _accepted(self, name: str, upload: str, size: int) -> None:
        headers = {"Location": f"/v2/{name}/blobs/uploads/{upload}", "Range": f"0-{max(0, size - 1)}"}
        self.reply(HTTPStatus.ACCEPTED, b"", headers)

    def _tags(self, name: str, _rest: str, _query: str, _body: bytes, _behaviour: Behaviour | None) -> None:
        if not self.registry.store.knows(name):
            self.fail(HTTPStatus.NOT_FOUND, "NAME_UNKNOWN")
            return
        document = {"name": name, "tags": self.registry.store.tags(name)}
        self.reply(HTTPStatus.OK, json.dumps(document).encode(), {"Content-Type": "application/json"})

    def _referrers(self, name: str, subject: str, query: str, _body: bytes, behaviour: Behaviour | None) -> None:
        planted = behaviour is not None and behaviour.mode is Hostility.PLANTED_TAG
        if not self.registry.referrers_api or planted:
            self.fail(HTTPStatus.NOT_FOUND, "")
            return
        asked = parse_qs(query)
        entries = self.registry.store.referrers(name, subject)
        if behaviour is not None:
            entries = serving.altered_referrers(self.registry.store, name, behaviour, entries)
        headers = {"Content-Type": INDEX_TYPE}
        kind = asked.get("artifactType", [""])[0]
        if kind:
            entries = [entry for entry in entries if entry.get("artifactType") == kind]
            headers["OCI-Filters-Applied"] = "artifactType"
        start = int(asked.get("last", ["0"])[0])
        page = self.registry.referrers_page
        if behaviour is not None and behaviour.mode is Hostility.MANY_REFERRERS:
            page = len(entries)
        if behaviour is not None and behaviour.mode is Hostility.INDEX_LOOP:
            headers["Link"] = f'<{self.path}>; rel="next"'
        elif start + page < len(entries):
            path = urlsplit(self.path).path
            headers["Link"] = f'<{path}?artifactType={kind.replace("+", "%2B")}&last={start + page}>; rel="next"'
        document = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": entries[start : start + page]}
        self.reply(HTTPStatus.OK, json.dumps(document).encode(), headers)

    def _delete(self, name: str, kind: str, reference: str, missing: str) -> None:
        if self.registry.store.delete(name, kind, reference):
            self.reply(HTTPStatus.ACCEPTED, b"", {})
        else:
            self.fail(HTTPStatus.NOT_FOUND, missing)

    # --- answers -------------------------------------------------------------------------------------

    def reply(self, status: int, body: bytes, headers: dict[str, str], *, length: int | None = None) -> None:
        """A whole answer; HEAD gets the headers only."""
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def fail(self, status: int, code: str, headers: dict[str, str] | None = None) -> None:
        """An error in the distribution form, or bare text where no code is given."""
        if code:
            body = json.dumps({"errors": [{"code": code, "message": code.lower()}]}).encode()
            self.reply(status, body, {"Content-Type": "application/json", **(headers or {})})
        else:
            self.reply(status, b"404 page not found\n", {"Content-Type": "text/plain", **(headers or {})})

    def challenge(self, value: str) -> None:
        """A 401."""
        self.fail(HTTPStatus.UNAUTHORIZED, "UNAUTHORIZED", {"WWW-Authenticate": value})

    def _read_body(self) -> bytes | None:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return self._read_chunked()
        length = int(self.headers.get("Content-Length") or 0)
        return self.rfile.read(length) if length <= _MAX_BODY_BYTES else None

    def _read_chunked(self) -> bytes | None:
        body = bytearray()
        while size := int(self.rfile.readline(64).split(b";")[0].strip() or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline(64)
            if len(body) > _MAX_BODY_BYTES:
                return None
        self.rfile.readline(64)
        return bytes(body)


for _verb in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
    setattr(RegistryHandler, f"do_{_verb}", RegistryHandler.dispatch)
