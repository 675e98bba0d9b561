"""A registry that nobody reads without a login: who shows a token has it read, and the page says what that means."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from app.adapters.oci.publishing import OciPublisher
from app.sandbox.identities import OCTOCAT, UAT_AWS
from tests.support.endtoend import RECIPE, Service, Signing, bundle_of, cli, service
from tests.support.registries import RunningRegistry, debian_basic, debian_plain

TOKEN = {"Authorization": "Bearer ci-token"}


@dataclass(frozen=True)
class Private:
    """A registry with basic auth, an open one, and a service that has the login of the first."""

    registry: RunningRegistry
    mirror: RunningRegistry
    service: Service
    sigstore: Signing

    def submit(self, ref: object, headers: dict[str, str]) -> httpx.Response:
        return self.service.http.post("/evidence", json={"bundle": str(ref)}, headers=headers)

    def remarks(self) -> list[str]:
        (source,) = self.service.recipe()["sources"]
        return [remark["code"] for remark in source["remarks"]]


@pytest.fixture(scope="module")
def private(sigstore: Signing, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Private]:
    directory = tmp_path_factory.mktemp("private")
    with debian_basic() as registry, debian_plain() as mirror:
        login = registry.logins[registry.host]
        logins = directory / "logins.json"
        logins.write_text(json.dumps({registry.host: {"user": login.user, "password": login.password}}))
        with service(
            directory / "service",
            sigstore.trusted_root,
            [registry.host, mirror.host],
            [OCTOCAT, UAT_AWS],
            registry_credentials=str(logins),
            catalogue_token="ci-token",
        ) as up:
            yield Private(registry, mirror, up, sigstore)


def test_a_private_bundle_counts_when_a_caller_with_a_token_names_it(private: Private) -> None:
    publisher = OciPublisher(private.registry.writer())
    published = private.sigstore.publish(bundle_of("octocat"), private.registry.host, OCTOCAT, registry=publisher)
    anonymous = private.submit(published.ref, {})
    assert (anonymous.status_code, anonymous.json()["details"]["cause"]["httpStatus"]) == (422, 401)
    named = private.submit(published.ref, TOKEN)
    assert (named.status_code, named.json()["recipe"]) == (201, RECIPE)
    assert "not-public" in [remark["code"] for remark in named.json()["remarks"]]
    assert "not-public" in private.remarks()
    mirrored = private.sigstore.publish(bundle_of("octocat"), private.mirror.host, OCTOCAT)
    assert mirrored.digest == published.digest
    again = private.submit(mirrored.ref, {})
    assert again.status_code == 200, again.text
    assert "not-public" not in private.remarks()


def test_the_command_line_submits_it_with_a_token(private: Private, tmp_path: Path) -> None:
    publisher = OciPublisher(private.registry.writer())
    published = private.sigstore.publish(
        bundle_of("octocat-2"), private.registry.host, OCTOCAT, tag="two", registry=publisher
    )
    (tmp_path / "token").write_text("ci-token\n")
    words = (str(published.ref), "--api", private.service.url)
    token = ("--token-file", str(tmp_path / "token"))
    assert (cli("submit", *words).code, cli("verify", *words).code) == (2, 2)
    assert cli("verify", *words, *token).code == 0
    done = cli("submit", *words, *token)
    assert (done.code, done.out.partition(":")[0]) == (0, RECIPE)


def test_an_open_bundle_is_public_whoever_names_it(private: Private) -> None:
    published = private.sigstore.publish(bundle_of("aws"), private.mirror.host, UAT_AWS, tag="aws")
    named = private.submit(published.ref, TOKEN)
    assert named.status_code == 201, named.text
    assert "not-public" not in [remark["code"] for remark in named.json()["remarks"]]
