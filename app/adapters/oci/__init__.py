"""Everything OCI: the strict reader, the archive, the deterministic writer.

`Writer` is imported from `app.adapters.oci.writer`, so that a reader does not load `oras`.
"""

from app.adapters.oci.addresses import HostRules
from app.adapters.oci.archive import OciArchive
from app.adapters.oci.auth import RegistryLogin, parse_logins
from app.adapters.oci.codes import FETCH_CODES, OVERSIZE_CODES, FetchCode
from app.adapters.oci.layout_tar import read_layout_tar
from app.adapters.oci.limits import ByteBudget, ReaderLimits
from app.adapters.oci.occupancy import Occupancy, occupied
from app.adapters.oci.pack import BundleArtifact, SignatureArtifact, default_tag, describe_bundle, describe_signature
from app.adapters.oci.reader import OciRegistry

__all__ = [
    "FETCH_CODES",
    "OVERSIZE_CODES",
    "BundleArtifact",
    "ByteBudget",
    "FetchCode",
    "HostRules",
    "Occupancy",
    "OciArchive",
    "OciRegistry",
    "ReaderLimits",
    "RegistryLogin",
    "SignatureArtifact",
    "default_tag",
    "describe_bundle",
    "describe_signature",
    "occupied",
    "parse_logins",
    "read_layout_tar",
]
