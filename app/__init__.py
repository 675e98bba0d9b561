"""aicr-evidence: says whether a GPU-cluster recipe is really confirmed, and by whom."""

__version__ = "0.1.0"
