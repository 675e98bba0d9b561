"""`python -m app` is `aicr-evidence`."""

import sys

from app.cli.main import aicr_evidence

sys.exit(aicr_evidence())
