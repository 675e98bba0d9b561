"""Files on disk as values: bundle directories, pointers and the committed tree.

No link is followed below what the caller named, nothing but a regular file is opened, and every read has a bound. What
the content means is decided in the core.
"""

from app.adapters.files.content import ContentLimits, DirectoryReader
from app.adapters.files.pointers import PointerFiles, TreeLimits

__all__ = ["ContentLimits", "DirectoryReader", "PointerFiles", "TreeLimits"]
