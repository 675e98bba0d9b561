"""Keyless signing: an identity token and a statement in, a Sigstore bundle out (evidence-format 3).

Services and trust come as two documents, so that a private Sigstore and the public-good instance are the same thing
here. Pushing the bundle as a referrer is the registry adapter's work.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, Self

import requests
from cryptography.x509 import Certificate
from google.protobuf import json_format
from in_toto_attestation.v1.statement import Statement as ReferenceStatement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from pydantic import ValidationError
from rfc3161_client import TimeStampResponse
from sigstore import dsse
from sigstore._internal.fulcio.client import ExpiredCertificate, FulcioClientError
from sigstore._internal.rekor import RekorClientError, RekorLogSubmitter
from sigstore._internal.rekor.client import RekorClient
from sigstore._internal.timestamp import TimestampAuthorityClient, TimestampError
from sigstore._internal.tuf import DEFAULT_TUF_URL
from sigstore._utils import read_embedded
from sigstore.errors import Error as SigstoreError
from sigstore.models import Bundle, SigningConfig, TrustedRoot
from sigstore.oidc import ExpiredIdentity, IdentityError, IdentityToken, detect_credential
from sigstore.sign import SigningContext
from sigstore.verify import Verifier
from sigstore_models.trustroot.v1 import SigningConfig as SigningConfigModel
from sigstore_models.trustroot.v1 import TrustedRoot as TrustedRootModel

from app.adapters.sigstore.outbound import Client, bind
from app.core.errors import Category, DocumentInvalid, FetchError, ForbiddenError, InputError

AUDIENCE: Final = "sigstore"
TIMEOUT_SECONDS: Final = 30.0
MAX_TRUST_BYTES: Final = 4 << 20
MAX_TOKEN_CHARS: Final = 65_536
MAX_STATEMENT_BYTES: Final = 10 << 20
MAX_DEPTH: Final = 100
"""How deep a statement may nest, as protobuf counts."""
_UNUSABLE: Final = (SigstoreError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What the library raises over an answer that is none; its clients read answers without looking first."""

_MIXED: Final = "trusted root and signing configuration may be of different Sigstore instances"


@dataclass(frozen=True, slots=True)
class SigningTrust:
    """Where to sign and whom to believe: the exact texts of a trusted root and a signing configuration."""

    trusted_root: bytes
    signing_config: bytes
    timeout_seconds: float = TIMEOUT_SECONDS  # of one request to one service

    @classmethod
    def from_files(cls, trusted_root: Path, signing_config: Path, *, timeout_seconds: float = TIMEOUT_SECONDS) -> Self:
        """Read both files; raises `InputError`."""
        return cls(_read(trusted_root), _read(signing_config), timeout_seconds)

    @classmethod
    def public_good(cls, *, timeout_seconds: float = TIMEOUT_SECONDS) -> Self:
        """The public-good instance as the library's release knows it; no network, no cache directory."""
        return cls(
            read_embedded("trusted_root.json", DEFAULT_TUF_URL),
            read_embedded("signing_config.v0.2.json", DEFAULT_TUF_URL),
            timeout_seconds,
        )


def ambient_token(audience: str = AUDIENCE) -> str | None:
    """The identity token that the surrounding CI system offers, None outside of one; raises `ForbiddenError`."""
    try:
        return detect_credential(audience)
    except IdentityError as err:
        raise ForbiddenError(
            f"expected an identity token from the CI environment: {_first_line(err)}",
            hint="a GitHub Actions job needs `permissions: id-token: write`",
        ) from err


def sign_statement(statement: bytes, *, token: str, trust: SigningTrust) -> bytes:
    """Sign exactly these bytes as the token's identity; the bundle's exact JSON.

    (0) Read token, statement and trust, (1) get a certificate, sign, timestamp and log, (2) verify the bundle under
    the given root, so that what is handed out is what a verifier will take. Only the configured URLs are called.
    Raises `DocumentInvalid` and `InputError` for what was given, `ForbiddenError` for a token that does not count,
    `FetchError` for a service that did not do its part.
    """
    # (0) Everything that can be wrong without a network.
    identity = _identity(token)
    content = _statement(statement)
    root = _trusted_root(trust.trusted_root)
    context = _context(trust, root)

    # (1) One certificate, one signature, one entry.
    with _own_errors(), context.signer(identity) as signer:
        bundle = signer.sign_dsse(content)

    # (2) Nothing leaves that does not verify.
    text = bundle.to_json()
    try:
        _, payload = Verifier(trusted_root=root).verify_dsse(Bundle.from_json(text), _AnySigner())
    except (SigstoreError, ValueError) as err:
        raise FetchError(
            f"expected a bundle that verifies under the trusted root: {_first_line(err)}",
            category=Category.INTERNAL,
            hint=_MIXED,
        ) from err
    if payload != statement:
        raise FetchError("expected the statement as payload of the bundle", category=Category.INTERNAL)
    return text.encode()


class _AnySigner:
    """The policy of a signer: whose certificate it is was decided by the token."""

    def verify(self, cert: Certificate) -> None:
        """Every certificate."""


class _Authority(TimestampAuthorityClient):
    """A timestamp authority whose failure ends the signing.

    The library only warns, and by then the signature would stand in a public log with no time to it.
    """

    def request_timestamp(self, signature: bytes) -> TimeStampResponse:
        """A timestamp over the raw signature; raises `FetchError`."""
        try:
            return super().request_timestamp(signature)
        except TimestampError as err:
            raise _service_failed("the timestamp authority", err) from err


def _context(trust: SigningTrust, root: TrustedRoot) -> SigningContext:
    try:
        config = SigningConfig(SigningConfigModel.from_json(trust.signing_config))
        rekor, fulcio = config.get_tlogs()[0], config.get_fulcio()
        authorities = [_Authority(client.url) for client in config.get_tsas()]
    except (SigstoreError, ValueError) as err:
        raise DocumentInvalid(f"expected a Sigstore signing configuration: {_first_line(err)}") from err
    if not authorities and not isinstance(rekor, RekorClient):
        raise DocumentInvalid(
            "expected a timestamp authority in the signing configuration, since a Rekor v2 log tells no time",
            hint="add tsaUrls and tsaConfig",
        )
    clients: list[Client | RekorLogSubmitter] = [fulcio, rekor, *authorities]
    for client in clients:
        bind(client, timeout_seconds=trust.timeout_seconds)
    return SigningContext(fulcio=fulcio, rekor=rekor, trusted_root=root, tsa_clients=list(authorities))


def _trusted_root(text: bytes) -> TrustedRoot:
    try:
        root = TrustedRoot(TrustedRootModel.from_json(text))
        root.get_fulcio_certs()
    except (SigstoreError, ValueError) as err:
        raise DocumentInvalid(f"expected a Sigstore trusted root: {_first_line(err)}") from err
    return root


def _identity(token: str) -> IdentityToken:
    if len(token) > MAX_TOKEN_CHARS:
        raise ForbiddenError(
            f"expected a token of at most {MAX_TOKEN_CHARS} characters, got {len(token)}",
            hint="an identity token is a JWT of a few kilobytes",
        )
    try:
        return IdentityToken(token.strip())
    except (IdentityError, RecursionError) as err:
        raise ForbiddenError(
            f"expected an identity token for audience {AUDIENCE!r} within its validity: {_first_line(err)}",
            hint="get a fresh token; it is used within minutes of its issue",
        ) from err


def _statement(statement: bytes) -> dsse.Statement:
    if len(statement) > MAX_STATEMENT_BYTES:
        raise DocumentInvalid(f"expected a statement of at most {MAX_STATEMENT_BYTES} bytes, got {len(statement)}")
    try:
        # What goes into a public log for ever must be a statement by in-toto's own library, not only by our reader.
        message = json_format.Parse(statement, StatementMessage(), max_recursion_depth=MAX_DEPTH)
        ReferenceStatement.copy_from_pb(message).validate()
        return dsse.Statement(statement)
    except (SigstoreError, ValueError, RecursionError, json_format.ParseError) as err:
        raise DocumentInvalid(f"expected an in-toto statement: {_first_line(err)}") from err


@contextmanager
def _own_errors() -> Iterator[None]:
    """Turn whatever the library and its HTTP client raise while signing into errors of this service."""
    try:
        yield
    except FulcioClientError as err:
        _fulcio_failed(err)
    except RekorClientError as err:
        raise _service_failed("the transparency log", err) from err
    except (ExpiredIdentity, ExpiredCertificate) as err:
        raise ForbiddenError("expected an identity token that is still valid", hint="get a fresh token") from err
    except (requests.JSONDecodeError, *_UNUSABLE) as err:
        raise FetchError(
            f"expected usable answers from the signing services: {_first_line(err)}",
            category=Category.INTERNAL,
            hint=_MIXED,
        ) from err
    except requests.RequestException as err:
        raise _service_failed("a signing service", err) from err


def _fulcio_failed(err: FulcioClientError) -> NoReturn:
    status = _status(err)
    if status in {400, 401, 403}:
        raise ForbiddenError(
            f"the certificate authority refused the identity token (status {status}): {_answer(err)}",
            hint="the token's issuer, audience and age are what the authority looks at",
        ) from err
    raise _service_failed("the certificate authority", err) from err


def _service_failed(service: str, err: Exception) -> FetchError:
    status = _status(err)
    if status is not None:
        return FetchError(f"{service} answered with status {status}: {_answer(err)}", http_status=status)
    wire = _wire_error(err)
    if wire is not None and wire.request is not None and isinstance(wire.request.url, str):
        service = _printable(wire.request.url.partition("?")[0])
    timed_out = isinstance(wire, requests.Timeout)
    category = Category.TIMEOUT if timed_out else Category.UNAVAILABLE
    return FetchError(f"expected an answer from {service}: {_reason(wire or err)}", category=category)


def _reason(err: BaseException) -> str:
    """What the operating system said, if it was asked; the library's own chain of prefixes otherwise."""
    cause: BaseException | None = err
    for _ in range(16):
        if cause is None:
            break
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower()
        cause = cause.__cause__ or cause.__context__
    return _first_line(err)


def _wire_error(err: BaseException | None) -> requests.RequestException | None:
    """The HTTP client's error that `err` is or was raised for."""
    for _ in range(8):
        if err is None or isinstance(err, requests.RequestException):
            return err
        err = err.__cause__ or err.__context__
    return None


def _status(err: Exception) -> int | None:
    wire = _wire_error(err)
    return wire.response.status_code if wire is not None and wire.response is not None else None


def _answer(err: Exception) -> str:
    """The `message` of a service's JSON answer, one printable line."""
    wire = _wire_error(err)
    if wire is None or wire.response is None:
        return ""
    try:
        message = wire.response.json()["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return wire.response.reason or ""
    return _printable(str(message))


def _first_line(err: BaseException) -> str:
    if isinstance(err, ValidationError):
        first = err.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return _printable(f"{place}: {first['msg']}" if place else first["msg"])
    lines = str(err).strip().splitlines()
    return _printable(lines[0]) if lines else type(err).__name__


def _printable(text: str) -> str:
    return "".join(ch if ch.isprintable() else " " for ch in text[:300])


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_TRUST_BYTES + 1)
    except OSError as err:
        raise InputError(f"expected a readable file at {path}: {err.strerror or err}") from err
    if len(data) > MAX_TRUST_BYTES:
        raise InputError(f"expected at most {MAX_TRUST_BYTES} bytes in {path}, got more")
    return data
