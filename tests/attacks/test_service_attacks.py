"""Attacks on a running service and on those who read its answers; each is named after its kind."""

import contextlib
import hashlib
import io
import json
import re
import socket
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app.sandbox.identities import DEV_TWO
from app.sandbox.registry import Behaviour, Hostility, SandboxRegistry
from app.web import bodies
from app.web import wire as heads
from tests.support.arena import NOW, Arena, recipe_named, report_of, sample_of
from tests.support.bundles import check
from tests.support.endtoend import cli

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
TERMINAL = "\x1b[2J\x1b]0;owned\x07"
BIDI = "pass\u202eeruliaf"
MARKDOWN = "x](javascript:alert(1)) **all passed** | `a` |\n# PASSED"
DIGEST = "sha256:" + "1f0c0ffee".ljust(64, "0")


# --- what others are shown ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile_names(attacked: Arena) -> str:
    """A recipe whose test names are written for whoever looks at them."""
    attested = NOW - timedelta(days=1)
    tests = [check(name) for name in (SCRIPT, IMAGE, TERMINAL, BIDI, MARKDOWN, "a" * 250)]
    reports = {"deployment": report_of(*tests, attested=attested)}
    attacked.accepted(attacked.push(sample_of("shown", reports=reports, predicate={"aicrVersion": SCRIPT})))
    return "h100-eks-ubuntu-training-shown"


def test_markup_in_names_on_a_page(attacked: Arena, hostile_names: str) -> None:
    for path in (f"/ui/recipes/{hostile_names}", "/ui/recipes"):
        page = attacked.get(path)
        assert page.status_code == 200
        assert SCRIPT not in page.text
        assert "<img" not in page.text
        assert "\x1b" not in page.text
        assert "\u202e" not in page.text
        assert "script-src 'none'" in page.headers["content-security-policy"] or (
            "default-src 'none'" in page.headers["content-security-policy"]
        )


def test_markup_in_a_query_is_not_reflected(attacked: Arena) -> None:
    page = attacked.service.http.get("/ui/recipes", params={"q": SCRIPT + IMAGE, "service": IMAGE})
    assert page.status_code == 200
    assert SCRIPT not in page.text
    assert "<img" not in page.text
    missing = attacked.get(f"/ui/recipes/{SCRIPT}")
    assert missing.status_code == 404
    assert SCRIPT not in missing.text


def test_names_in_a_markdown_report(attacked: Arena, hostile_names: str) -> None:
    record = attacked.service.http.get("/evidence", params={"recipe": hostile_names}).json()["items"][0]
    text = attacked.get(f"/evidence/{record['digest']}/{record['source']}/report?format=markdown").text
    assert SCRIPT not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\n# PASSED" not in text


def test_names_on_a_terminal(attacked: Arena, hostile_names: str) -> None:
    for words in (("status", hostile_names), ("why", hostile_names), ("status",)):
        said = cli(*words, "--api", attacked.service.url)
        assert said.code == 0, said.err
        assert "\x1b" not in said.out + said.err
        assert "\x07" not in said.out + said.err
        assert "\u202e" not in said.out + said.err


def test_names_in_json_are_exact_and_inert(attacked: Arena, hostile_names: str) -> None:
    answer = attacked.get(f"/recipes/{hostile_names}")
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert SCRIPT in [row["name"] for row in answer.json()["rows"]]


# --- files -------------------------------------------------------------------------------------------

STRANGE_FILES = {
    'a"; filename=evil.html; x="': b"quote",
    "a.html": f"<html>{SCRIPT}</html>".encode(),
    "%2e%2e%2fetc": b"percent",
    "sub/\u00e9;a=b.svg": b"<svg onload=alert(1)>",
}


@pytest.fixture(scope="module")
def strange_files(attacked: Arena) -> str:
    """The digest of a bundle with files of odd names."""
    return attacked.push_and_keep(sample_of("files", extra=dict(STRANGE_FILES)))


@pytest.mark.parametrize("name", STRANGE_FILES)
def test_header_injection_by_file_names(attacked: Arena, strange_files: str, name: str) -> None:
    """The name that a browser would save is one token; what is served can not run."""
    answer = attacked.get(f"/evidence/{strange_files}/files/{_quoted(name)}")
    assert (answer.status_code, answer.content) == (200, STRANGE_FILES[name])
    disposition = answer.headers["content-disposition"]
    assert re.fullmatch(r"attachment; filename\*=UTF-8''[A-Za-z0-9%._~-]+", disposition), disposition
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]


def _quoted(path: str) -> str:
    return "".join(f"%{byte:02X}" for byte in path.encode())


@pytest.mark.parametrize(
    "path",
    [
        "../../../../../../etc/passwd",
        "..%2f..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "%252e%252e%252fetc%252fpasswd",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "ctrf/../../../../etc/passwd",
        "ctrf%2f..%2frecipe.yaml",
        "ctrf/./deployment.json",
        "ctrf//deployment.json",
        "recipe.yaml/",
        "recipe.yaml%00.txt",
        "..%5c..%5cetc%5cpasswd",
        "ctrf",
        ".",
        "%2e",
    ],
)
def test_zip_slip_in_a_file_path(attacked: Arena, strange_files: str, path: str) -> None:
    """Asked on the wire as it stands here: no client cleans it up first."""
    status, body = _raw(attacked, f"GET /evidence/{strange_files}/files/{path} HTTP/1.1")
    assert status in {307, 400, 404}
    assert b"root:" not in body
    assert b"RecipeResult" not in body


def test_an_archive_holds_only_safe_paths(attacked: Arena, strange_files: str) -> None:
    with tarfile.open(fileobj=io.BytesIO(attacked.get(f"/evidence/{strange_files}/archive").content)) as archive:
        names = archive.getnames()
    assert all(not name.startswith("/") and ".." not in name.split("/") for name in names)


# --- where the service is led ------------------------------------------------------------------------


@contextmanager
def bystander() -> Iterator[SandboxRegistry]:
    """A server that nobody told the service to ask."""
    with SandboxRegistry() as running:
        yield running
        assert running.log == []


@pytest.mark.parametrize(
    "reference",
    [
        "{other}/aicr/evidence@{digest}",
        "{host}@{other}/aicr/evidence@{digest}",
        "{host}#@{other}/aicr/evidence@{digest}",
        "{host}/../{other}/aicr/evidence@{digest}",
        "{host}/aicr/../../{other}/x@{digest}",
        "{other}/{host}/aicr/evidence@{digest}",
        "oci://{other}/aicr/evidence@{digest}",
        "http://{other}/aicr/evidence@{digest}",
        "{host}.{other}/aicr/evidence@{digest}",
        "169.254.169.254/aicr/evidence@{digest}",
        "[::1]:80/aicr/evidence@{digest}",
        "0x7f.1/aicr/evidence@{digest}",
        "2130706433/aicr/evidence@{digest}",
        "localhost/aicr/evidence@{digest}",
        "{host}/evil/evidence@{digest}",
        "{host}/aicrx/evidence@{digest}",
        "{host}\\{other}/aicr/evidence@{digest}",
        "{host}\r\nHost: {other}/aicr/evidence@{digest}",
        "{host}/aicr/evidence%2f..%2fx@{digest}",
        "{host}\uff0f{other}/aicr/evidence@{digest}",
    ],
)
def test_ssrf_by_reference(attacked: Arena, reference: str) -> None:
    """In `bundle` and in a pointer's `bundle.oci`: refused before anything is opened."""
    seen = len(attacked.registry.log)
    with bystander() as other:
        text = reference.format(host=attacked.registry.host, other=other.host, digest=DIGEST)
        plain = attacked.service.http.post("/evidence", json={"bundle": text})
        pointer = {
            "schemaVersion": "1.0.0",
            "recipe": "x",
            "attestations": [
                {
                    "bundle": {
                        "oci": text.partition("@sha256")[0] + ":v1",
                        "digest": DIGEST,
                        "predicateType": "https://aicr.run/recipe-evidence/v3",
                    }
                }
            ],
        }
        pointed = attacked.service.http.post("/evidence", json={"pointer": pointer})
    assert {plain.status_code, pointed.status_code} <= {400, 403}
    assert len(attacked.registry.log) == seen


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        pytest.param(Hostility.REDIRECT_PRIVATE, "ADDRESS_REFUSED", id="redirect to metadata"),
        pytest.param(Hostility.REDIRECT_ELSEWHERE, "REDIRECT_REFUSED", id="redirect to plain http"),
        pytest.param(Hostility.REDIRECT_LOOP, "REDIRECT_REFUSED", id="redirect loop"),
        pytest.param(Hostility.REALM_ELSEWHERE, "REALM_REFUSED", id="bearer realm"),
    ],
)
def test_ssrf_by_a_trusted_registry(attacked: Arena, mode: Hostility, code: str) -> None:
    with bystander() as other:
        ref = attacked.registry.plant(Behaviour(mode, elsewhere=f"http://{other.host}"), f"aicr/{mode.value}")
        answer = attacked.submit(ref)
    assert (answer.status_code, answer.json()["details"]["code"]) == (422, code)


# --- too much, too deep, too slow --------------------------------------------------------------------


def deep_yaml(levels: int) -> str:
    return "".join(f"{' ' * level}a:\n" for level in range(levels)) + " " * levels + "b\n"


def laughs(levels: int = 30) -> str:
    """Nine aliases a level: 9^30 nodes for whoever expands them."""
    lines = ['    a0: &a0 ["lol"]']
    lines += [f"    a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "bombs:\n" + "\n".join(lines) + "\n"


def test_billion_laughs_in_a_recipe(attacked: Arena) -> None:
    """Aliases are never expanded: the recipe is judged as any other."""
    sample = sample_of("laughs", recipe=laughs().encode() + recipe_named("laughs"))
    answer = attacked.submit(attacked.push(sample))
    assert answer.status_code in {201, 422}
    assert attacked.get("/health").status_code == 200


def test_billion_laughs_where_the_recipe_is_read(attacked: Arena) -> None:
    """In the part that is decoded, the expansion is bounded and refused."""
    bomb = laughs().replace("bombs:", "constraints:").encode()
    recipe = recipe_named("laughs-read")
    head, _, tail = recipe.partition(b"constraints:\n    - name: K8s.server.version\n      value: '>= 1.32.4'\n")
    assert (
        attacked.code(attacked.push(sample_of("laughs-read", recipe=bomb + head + tail))) == "RECIPE_IDENTITY_MISMATCH"
    )


def test_deep_yaml_in_a_recipe(attacked: Arena) -> None:
    sample = sample_of("deep", recipe=recipe_named("deep") + deep_yaml(500).encode())
    assert attacked.code(attacked.push(sample)) == "RECIPE_IDENTITY_MISMATCH"


def test_deep_json_in_a_report(attacked: Arena) -> None:
    def deepen(files: dict[str, bytes]) -> None:
        files["ctrf/deployment.json"] = b'{"a":' * 100_000 + b"1" + b"}" * 100_000

    assert attacked.code(attacked.push(sample_of("deep-report"), edit=deepen)) == "MANIFEST_INVENTORY"


@pytest.mark.parametrize("kind", ["application/json", "application/yaml"])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" * 500_000, id="deep list"),
        pytest.param(b'{"a":' * 100_000, id="deep mapping"),
        pytest.param(laughs().encode(), id="billion laughs"),
        pytest.param(b"a: &a [*a, *a]\n", id="alias to itself"),
        pytest.param(b"!!python/object/apply:os.system ['id']\n", id="tag"),
        pytest.param(b"".join(b"%%TAG !%d! b\n" % number for number in range(60_000)) + b"---\na: b\n", id="tags"),
        pytest.param(b"[" + b"a," * 500_000 + b"]", id="half a million scalars"),
        pytest.param(b'{"pointer":{"a":[' + b"0," * 300_000 + b"0]}}", id="half a million numbers"),
        pytest.param(b"\x00" * 1000, id="nul"),
        pytest.param(b"\xff\xfe" * 1000, id="utf-16"),
        pytest.param(b"9" * 900_000, id="long number"),
        pytest.param(b'{"bundle": "' + b"a" * 900_000 + b'"}', id="long reference"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_bodies_that_are_meant_to_hurt(attacked: Arena, kind: str, body: bytes) -> None:
    for path in ("/evidence", "/verify", "/answer"):
        answer = attacked.service.http.post(path, content=body, headers={"Content-Type": kind})
        assert answer.status_code == 400, answer.text
        assert answer.json()["code"] == "INVALID_REQUEST"
        assert len(answer.content) < 10_000


@pytest.mark.parametrize("lost", ["layer", "manifest", "signature", "index"])
def test_what_the_disk_lost_of_a_bundle_comes_back_with_the_next_post(attacked: Arena, lost: str) -> None:
    """Without anybody's hand on the archive, and as the record that was there."""
    pushed = attacked.push(sample_of(f"lost-{lost}"))
    first = attacked.accepted(pushed)
    layout = Path(
        attacked.service.container.settings.archive, pushed.artifact.digest.hex[:2], pushed.artifact.digest.hex
    )
    blobs = layout / "blobs" / "sha256"
    damaged = {
        "layer": blobs / pushed.artifact.layer_digest.hex,
        "manifest": blobs / pushed.artifact.digest.hex,
        "signature": blobs / hashlib.sha256(pushed.signature).hexdigest(),
        "index": layout / "index.json",
    }[lost]
    damaged.write_bytes(b"{" + damaged.read_bytes()[1:-1])
    assert attacked.get(f"/evidence/{pushed.digest}/archive").status_code == 503

    again = attacked.submit(pushed)

    assert (again.status_code, again.json()) == (200, first)
    assert attacked.get(f"/evidence/{pushed.digest}/archive").status_code == 200
    assert attacked.get(f"/evidence/{pushed.digest}/{first['source']}/bundle").content == pushed.signature
    assert attacked.get(f"/evidence/{pushed.digest}/{first['source']}/report").json()["exit"] == 0


def test_an_oversized_body(attacked: Arena) -> None:
    """Declared, and sent in chunks without a length: either way it is not read to the end."""
    large = b"a" * ((1 << 20) + 1)
    declared = attacked.service.http.post("/evidence", content=large, headers={"Content-Type": "application/json"})
    chunked = attacked.service.http.post(
        "/evidence", content=iter([large]), headers={"Content-Type": "application/json"}
    )
    for answer in (declared, chunked):
        assert (answer.status_code, answer.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")


def test_a_body_of_another_kind_or_coding(attacked: Arena) -> None:
    post = attacked.service.http.post
    form = post("/evidence", content=b"a=b", headers={"Content-Type": "application/x-www-form-urlencoded"})
    packed = post("/evidence", content=b"x", headers={"Content-Type": "application/json", "Content-Encoding": "gzip"})
    assert [answer.status_code for answer in (form, packed)] == [415, 415]


def test_a_slow_body_ends(attacked: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte now and then: the time for a whole body is bounded, and others are served meanwhile."""
    monkeypatch.setattr(bodies, "READ_SECONDS", 1.0)
    with _connection(attacked) as wire:
        head = "POST /evidence HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
        wire.sendall(head.encode())
        wire.settimeout(20)
        answer = b""
        for _ in range(100):
            wire.sendall(b" ")
            assert attacked.get("/health").status_code == 200
            wire.settimeout(0.1)
            try:
                answer = wire.recv(65536)
                break
            except TimeoutError:
                continue
    assert answer.startswith(b"HTTP/1.1 408")


def test_a_slow_request_head_ends(attacked: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers that never finish a request head are hung up on, the silent one too; nobody else notices."""
    monkeypatch.setattr(heads, "HEAD_SECONDS", 0.3)
    with contextlib.ExitStack() as stack:
        silent, first, later = (stack.enter_context(_connection(attacked)) for _ in range(3))
        first.sendall(b"GET /health HTTP/1.1\r\nX-Never: ")
        later.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert later.recv(65536).startswith(b"HTTP/1.1 200")
        later.sendall(b"GET /hea")
        for held in (silent, first, later):
            assert _hung_up(held)
        assert attacked.get("/health").status_code == 200


def _hung_up(held: socket.socket) -> bool:
    """Whether the server ends a connection without having answered."""
    try:
        while piece := held.recv(65536):
            if b"HTTP/1.1" in piece:
                return False
    except ConnectionError:
        pass
    return True


def test_a_head_in_pieces_is_answered(attacked: Arena) -> None:
    with _connection(attacked) as held:
        for piece in (b"GET /hea", b"lth HTTP/1.1\r\nHo", b"st: x\r\n", b"\r\n"):
            held.sendall(piece)
        assert held.recv(65536).startswith(b"HTTP/1.1 200")


def test_an_oversized_header(attacked: Arena) -> None:
    status, _ = _raw(attacked, "GET /health HTTP/1.1", {"X-Long": "a" * 200_000})
    assert status in {400, 431}
    assert attacked.get("/health").status_code == 200


def test_many_headers_and_a_long_target(attacked: Arena) -> None:
    many, _ = _raw(attacked, "GET /health HTTP/1.1", {f"X-{n}": "a" * 50 for n in range(5000)})
    long, _ = _raw(attacked, f"GET /recipes?q={'a' * 100_000} HTTP/1.1")
    assert many in {200, 400, 431}
    assert long in {400, 414, 431}
    assert attacked.get("/health").status_code == 200


def test_request_smuggling_by_two_lengths(attacked: Arena) -> None:
    both = {"Content-Length": "5", "Transfer-Encoding": "chunked"}
    status, body = _raw(attacked, "POST /evidence HTTP/1.1", both, b"0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n")
    assert status == 400 or body.count(b"HTTP/1.1 ") == 0


@contextmanager
def _connection(attacked: Arena) -> Iterator[socket.socket]:
    at = urlsplit(attacked.service.url)
    with socket.create_connection((at.hostname or "", at.port or 0), timeout=20) as wire:
        yield wire


def _raw(attacked: Arena, line: str, headers: dict[str, str] | None = None, body: bytes = b"") -> tuple[int, bytes]:
    """Status and body of a request as it is written here; 400 when the server hung up on it."""
    head = "".join(
        f"{name}: {value}\r\n" for name, value in {"Host": "x", "Connection": "close", **(headers or {})}.items()
    )
    answer = b""
    with _connection(attacked) as wire:
        try:
            wire.sendall(f"{line}\r\n{head}\r\n".encode("latin-1") + body)
            while piece := wire.recv(65536):
                answer += piece
        except ConnectionError:
            pass
    if not answer:
        return 400, b""
    return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2]


# --- tokens and routes -------------------------------------------------------------------------------


def test_no_administrative_route_without_its_token(attacked: Arena) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer null"},
        {"Authorization": "Basic Og=="},
    ):
        answer = attacked.service.http.put("/recipes/x", json={"recipe": "a: b"}, headers=headers)
        assert answer.status_code == 403


def test_no_route_writes_the_allowlist(attacked: Arena) -> None:
    for method in ("PUT", "POST", "PATCH", "DELETE"):
        answer = attacked.service.http.request(method, "/allowlist", content=b"schemaVersion: 1.0.0\n")
        assert answer.status_code == 405


def test_a_method_override_is_ignored(attacked: Arena) -> None:
    answer = attacked.service.http.post("/recipes", headers={"X-HTTP-Method-Override": "PUT"}, json={"recipes": []})
    assert answer.status_code == 405


def test_a_refusal_names_no_address_and_no_path_of_the_server(attacked: Arena) -> None:
    details = attacked.refused(
        attacked.push(sample_of("leaks"), DEV_TWO, edit=lambda files: files.update({"stray.txt": b"x"}))
    )
    text = json.dumps(details)
    assert "dev-two@example.org" not in text
    assert "/tmp" not in text
    assert "Traceback" not in text
