"""Everything OCI: the strict reader, the archive, the deterministic writer."""

from app.adapters.oci.addresses import HostRules
from app.adapters.oci.auth import RegistryLogin, parse_logins
from app.adapters.oci.codes import FETCH_CODES, OVERSIZE_CODES, FetchCode
from app.adapters.oci.limits import ByteBudget, ReaderLimits
from app.adapters.oci.reader import OciRegistry

__all__ = [
    "FETCH_CODES",
    "OVERSIZE_CODES",
    "ByteBudget",
    "FetchCode",
    "HostRules",
    "OciRegistry",
    "ReaderLimits",
    "RegistryLogin",
    "parse_logins",
]
