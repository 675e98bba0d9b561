"""Hostile ways of serving: what the handler does instead of the honest answer."""

import json
from http import HTTPStatus
from typing import TYPE_CHECKING

from app.adapters.oci.manifest import INDEX_TYPE, MANIFEST_TYPE, SIGNATURE_TYPE, Descriptor
from app.adapters.oci.pack import describe_index, describe_signature, sha256
from app.sandbox.registry.modes import Behaviour, Hostility
from app.sandbox.registry.store import RegistryStore

if TYPE_CHECKING:
    from app.sandbox.registry.handler import RegistryHandler

_FOREIGN = Descriptor(MANIFEST_TYPE, sha256(b"another artifact"), 16)
_METADATA = "https://169.254.169.254/latest/meta-data"


def disturb(handler: "RegistryHandler", behaviour: Behaviour, name: str) -> bool:
    """Answer a read in a hostile way before anything is looked up; False to go on."""
    match behaviour.mode:
        case Hostility.REALM_ELSEWHERE:
            realm = f"{behaviour.elsewhere}/token"
            handler.challenge(f'Bearer realm="{realm}",service="sandbox",scope="repository:{name}:pull"')
        case Hostility.AUTH_LOOP:
            realm = f"{handler.registry.url}/token"
            handler.challenge(f'Bearer realm="{realm}",service="sandbox",scope="repository:{name}:pull,push"')
        case Hostility.RATE_LIMITED if behaviour.fails_now():
            handler.fail(HTTPStatus.TOO_MANY_REQUESTS, "TOOMANYREQUESTS", _retry_after(behaviour))
        case Hostility.SERVER_ERROR if behaviour.fails_now():
            handler.fail(HTTPStatus.SERVICE_UNAVAILABLE, "UNKNOWN", _retry_after(behaviour))
        case _:
            return False
    return True


def _retry_after(behaviour: Behaviour) -> dict[str, str]:
    seconds = behaviour.retry_after_seconds
    return {} if seconds is None else {"Retry-After": str(seconds)}


def content(
    handler: "RegistryHandler",
    behaviour: Behaviour | None,
    *,
    kind: str,
    digest: str,
    media_type: str,
    data: bytes,
) -> None:
    """Serve a manifest or blob, honestly or as the mode wants it."""
    headers = {"Content-Type": media_type, "Docker-Content-Digest": digest}
    mode = behaviour.mode if behaviour is not None else None
    if behaviour is None or handler.command == "HEAD":
        handler.reply(HTTPStatus.OK, data, headers)
        return
    if (mode, kind) in {(Hostility.WRONG_MANIFEST, "manifest"), (Hostility.WRONG_BLOB, "blob")}:
        data = data[:-1] + bytes([data[-1] ^ 1])
    if mode is Hostility.WRONG_CONTENT_DIGEST:
        headers["Docker-Content-Digest"] = str(sha256(b"something else"))
    if kind == "blob" and mode in _REDIRECTS:
        target = {
            Hostility.REDIRECT_ELSEWHERE: behaviour.elsewhere + handler.path,
            Hostility.REDIRECT_PRIVATE: _METADATA,
            Hostility.REDIRECT_LOOP: handler.path,
        }[_REDIRECTS[mode]]
        handler.reply(HTTPStatus.TEMPORARY_REDIRECT, b"", {"Location": target})
    elif mode in {Hostility.ENDLESS_BODY, Hostility.DRIP, Hostility.TRUNCATED}:
        _broken_body(handler, behaviour, headers, data)
    else:
        handler.reply(HTTPStatus.OK, data, headers)


_REDIRECTS: dict[Hostility | None, Hostility] = {
    mode: mode for mode in (Hostility.REDIRECT_ELSEWHERE, Hostility.REDIRECT_PRIVATE, Hostility.REDIRECT_LOOP)
}


def _broken_body(handler: "RegistryHandler", behaviour: Behaviour, headers: dict[str, str], data: bytes) -> None:
    """Bodies that never end, hardly move or stop half way; each closes its connection."""
    stopping = handler.registry.stopping
    handler.close_connection = True
    handler.send_response(HTTPStatus.OK)
    for key, value in headers.items():
        handler.send_header(key, value)
    if behaviour.mode is not Hostility.ENDLESS_BODY:
        handler.send_header("Content-Length", str(len(data)))
    handler.send_header("Connection", "close")
    handler.end_headers()
    try:
        if behaviour.mode is Hostility.TRUNCATED:
            handler.wfile.write(data[: len(data) // 2])
        elif behaviour.mode is Hostility.DRIP:
            for byte in data:
                handler.wfile.write(bytes([byte]))
                if stopping.wait(behaviour.drip_seconds):
                    return
        else:
            filler = bytes(64 << 10)
            handler.wfile.write(data)
            while not stopping.is_set():
                handler.wfile.write(filler)
    except OSError:
        return  # the client had enough


def altered_referrers(
    store: RegistryStore, name: str, behaviour: Behaviour, entries: list[dict[str, object]]
) -> list[dict[str, object]]:
    """The listing as a hostile registry gives it."""
    match behaviour.mode:
        case Hostility.NESTED_INDEX:
            inner = describe_index(())
            digest = store.put_manifest(name, "sha256:", INDEX_TYPE, inner)
            nested = {
                "mediaType": INDEX_TYPE,
                "digest": digest,
                "size": len(inner),
                "artifactType": SIGNATURE_TYPE,
            }
            return [nested, *entries]
        case Hostility.MANY_REFERRERS:
            return [
                Descriptor(MANIFEST_TYPE, sha256(str(n).encode()), 600, SIGNATURE_TYPE).to_json()
                for n in range(behaviour.referrers)
            ]
        case Hostility.FOREIGN_REFERRER:
            return [_foreign(store, name).to_json(), *entries]
        case _:
            return entries


def _foreign(store: RegistryStore, name: str) -> Descriptor:
    """A signature of another artifact, held in this repository."""
    signature = describe_signature(_FOREIGN, json.dumps({"sample": "foreign"}).encode())
    store.put_blob(name, signature.config)
    store.put_blob(name, signature.content)
    store.put_manifest(name, signature.tag, MANIFEST_TYPE, signature.manifest)
    return signature.descriptor


def planted_index(store: RegistryStore, name: str) -> tuple[str, str, bytes]:
    """A fallback tag that lists a signature of another artifact."""
    index = describe_index((_foreign(store, name),))
    return str(sha256(index)), INDEX_TYPE, index
