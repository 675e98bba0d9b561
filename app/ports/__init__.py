"""What the services ask of the world. Each port lets only errors of `app.core.errors` out.

Paths are plain strings here: the core and the services never open them.
"""

from app.ports.archive import BundleArchive
from app.ports.clock import Clock
from app.ports.fetch import Access, Artifact, BundleSource, ContentReader, OpenArchive, PointerTree, Pulled, PullOptions
from app.ports.kept import (
    Acknowledged,
    Act,
    AllowlistVersion,
    Attempt,
    Event,
    Kept,
    KnownSource,
    Location,
    Received,
    RecipeSummary,
    Record,
    RecordFilter,
    Weighing,
)
from app.ports.store import Classify, EvidenceStore, Listing, Project
from app.ports.verify import BundleVerifier, Judge, JudgeJob

__all__ = [
    "Access",
    "Acknowledged",
    "Act",
    "AllowlistVersion",
    "Artifact",
    "Attempt",
    "BundleArchive",
    "BundleSource",
    "BundleVerifier",
    "Classify",
    "Clock",
    "ContentReader",
    "Event",
    "EvidenceStore",
    "Judge",
    "JudgeJob",
    "Kept",
    "KnownSource",
    "Listing",
    "Location",
    "OpenArchive",
    "PointerTree",
    "Project",
    "PullOptions",
    "Pulled",
    "Received",
    "RecipeSummary",
    "Record",
    "RecordFilter",
    "Weighing",
]
