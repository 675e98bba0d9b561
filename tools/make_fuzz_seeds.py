"""Writes the seed corpus of the fuzz targets: good inputs, and those that came close to a fault.

Usage: .venv/bin/python tools/make_fuzz_seeds.py

Bundles are signed by a private Sigstore that is made for the run, so they verify under no root that anybody trusts.
"""

import json
import sys
import tarfile
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from app.adapters.oci.pack import describe_bundle, describe_signature, pack_tar  # noqa: E402  the path comes first
from tests.fuzz.targets import CORPUS, TARGETS  # noqa: E402
from tests.fuzz.targets import ROOT as TRUSTED_ROOT  # noqa: E402
from tests.support.bundles import RECIPE, V3, Sample, go_json, profiled  # noqa: E402
from tests.support.signatures import STATEMENT, minted, sigstore  # noqa: E402

DIGEST = "sha256:" + "1f0c0ffee" + "0" * 55
REFERENCE = f"ghcr.io/nvidia/aicr-evidence@{DIGEST}"
POINTER = f"""\
attestations:
  - attestedAt: 2026-05-08T10:23:11Z
    bundle:
      digest: {DIGEST}
      oci: ghcr.io/octocat/aicr-evidence:v1
      predicateType: {V3}
    signer:
      identity: 1234567+octocat@users.noreply.github.com
      issuer: https://github.com/login/oauth
      rekorLogIndex: 116117000
profile: gpuStack=operator-managed
recipe: h100-aks-ubuntu-training-gpustack-operator-managed
schemaVersion: 1.0.0
"""
POINTER_OBJECT = {
    "schemaVersion": "1.0.0",
    "recipe": "h100-eks-ubuntu-training",
    "attestations": [
        {
            "bundle": {"oci": "ghcr.io/octocat/aicr-evidence:v1", "digest": DIGEST, "predicateType": V3},
            "attestedAt": "2026-05-08T10:23:11Z",
            "signer": {"identity": "alice@example.org", "issuer": "https://github.com/login/oauth"},
        }
    ],
}
ALLOWLIST = (ROOT / "allowlist.yaml").read_bytes()
SNAPSHOT = b"""\
kind: Snapshot
measurements:
  - type: K8s
    subtypes:
      - subtype: node
        data: {provider: eks}
  - type: GPU
    subtypes:
      - name: hardware
        data: {model: NVIDIA-H100-80GB-HBM3}
  - type: OS
    subtypes:
      - subtype: release
        data: {ID: ubuntu}
"""
HEADERS = (
    b'Bearer realm="https://registry.example.org/token",service="registry",scope="repository:a/b:pull"\nBasic realm=x',
    b'</v2/a/b/referrers/sha256:00?n=2>; rel="next"\n120\nWed, 21 Oct 2026 07:28:00 GMT\n../x?y=z',
    b"https://169.254.169.254/latest/meta-data\n//other.example.org/x\nhttp://[::1]:5000/",
)
QUERIES = (
    b"digest=sha256:00&limit=5&class=community&staleness=DRIFTED&since=2026-01-01T00:00:00Z",
    b"service=eks&accelerator=h100&profile=a%3Db&q=x&asOf=2026-01-01T00:00:00Z&confirmBy=party",
)


def seeds() -> Mapping[str, Iterable[bytes]]:
    """Target -> its inputs."""
    sample, profile = Sample(), profiled()
    files = sample.files()
    statement = files["statement.intoto.json"]
    artifact = describe_bundle(files, predicate_type=V3, version="v1")
    signature = describe_signature(artifact.descriptor, b"{}")
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [
            {
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": DIGEST,
                "size": 100,
                "artifactType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            }
        ],
    }
    reports = [files[f"ctrf/{phase}.json"] for phase in sample.reports]
    catalogue = {"recipe": RECIPE.decode(), "commit": "abc1234", "declared": {"deployment": ["operator-health"]}}
    tar = pack_tar({"a.txt": b"a", "nested/deep/c.sh": b"c", "n" * 120: b"long"})
    vectors = (ROOT / "tests" / "assets" / "canonical_vectors.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line)["in"].encode() for line in vectors]
    return {
        "bundle": (minted(log="v1"), minted(log="v2")),
        "statement": (statement, STATEMENT, profile.files()["statement.intoto.json"]),
        "predicate": (json.dumps(json.loads(statement)["predicate"]).encode(),),
        "judge": (
            b"\x00" + files["recipe.yaml"],
            b"\x60" + files["recipe.yaml"],
            b"\x61" + files["manifest.json"],
            b"\x22" + statement,
            b"\x43" + files["bom.cdx.json"],
            b"\x64" + reports[0],
            b"\xe0" + profile.files()["recipe.yaml"],
        ),
        "recipe": (RECIPE, profile.recipe, *documents[16:24], *documents[60:70]),
        "ctrf": reports,
        "manifest": (files["manifest.json"],),
        "pointer": (POINTER.encode(), go_json(POINTER_OBJECT)),
        "pointer-object": (go_json(POINTER_OBJECT),),
        "reference": (REFERENCE.encode(), b"oci://localhost:5000/repo:latest", b"[::1]:5000/a/b:c", b"::not-a-ref"),
        "gate": (f"ghcr.io/nvidia,localhost:5000\n{REFERENCE}".encode(), b" ghcr.io/a , ,ghcr.io/b/c \nGHCR.io./a/b:c"),
        "allowlist": (ALLOWLIST,),
        "pin": (b"^https://github[.]com/NVIDIA/.+$", b"(a+)+$", b"(a|a)*b", rb"\pL{1000}"),
        "oci-json": (artifact.manifest, signature.manifest, json.dumps(index).encode()),
        "tar": (tar, _foreign_tar(tarfile.PAX_FORMAT), _foreign_tar(tarfile.GNU_FORMAT)),
        "layer": (b"\x00" + artifact.layer, b"\x01" + tar),
        "layout-tar": (_layout(artifact.layer, artifact.manifest, str(artifact.digest)),),
        "headers": HEADERS,
        "token": (b'{"token": "abc.def", "expires_in": 300}', b'{"access_token": "abc"}'),
        "snapshot": (SNAPSHOT, b'{"service": {"value": "eks"}, "accelerator": {"value": "h100"}, "os": "ubuntu"}'),
        "bodies": (
            json.dumps({"bundle": REFERENCE}).encode(),
            json.dumps({"pointer": POINTER_OBJECT}).encode(),
            json.dumps(catalogue).encode(),
            json.dumps({"recipes": [{"name": "h100-eks-ubuntu-training", **catalogue}], "ref": "main"}).encode(),
        ),
        "query": QUERIES,
        "text": (POINTER.encode(), files["manifest.json"]),
    }


def _foreign_tar(style: int) -> bytes:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=style) as archive:
        for name in ("a", "d/" + "x" * 150, "ü/é"):
            entry = tarfile.TarInfo(name)
            entry.size = 3
            archive.addfile(entry, BytesIO(b"abc"))
    return buffer.getvalue()


def _layout(layer: bytes, manifest: bytes, digest: str) -> bytes:
    layer_digest = json.loads(manifest)["layers"][0]["digest"]
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [
            {
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": digest,
                "size": len(manifest),
                "artifactType": "application/vnd.nvidia.aicr.artifact",
            }
        ],
    }
    empty = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    return pack_tar(
        {
            "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
            "index.json": json.dumps(index).encode(),
            f"blobs/sha256/{digest.removeprefix('sha256:')}": manifest,
            f"blobs/sha256/{layer_digest.removeprefix('sha256:')}": layer,
            f"blobs/sha256/{empty}": b"{}",
        }
    )


def main() -> int:
    """Write what is not there yet; nothing is removed, since faults that were found lie here too."""
    made = seeds()
    if set(made) != set(TARGETS):
        print("expected seeds for exactly the targets", file=sys.stderr)
        return 1
    TRUSTED_ROOT.write_bytes(sigstore().trusted_root_json())
    for name, inputs in made.items():
        directory = CORPUS / name
        directory.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(inputs):
            (directory / f"seed-{number:02d}").write_bytes(data)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
