"""Every setting of the service, read once from `AICR_EVIDENCE_*` (service 2).

Nothing else reads the environment; `aicr evidence settings` prints what is in force, from where, and the default.
"""

from app.config.listing import BAD, SettingLine, describe, unknown_variables
from app.config.rates import RateLimit
from app.config.reading import about, load_settings, survey
from app.config.settings import Settings
from app.config.uses import JUDGING, KEEPING, SERVING, STORE, WEIGHING
from app.config.wording import PREFIX, variable

__all__ = [
    "BAD",
    "JUDGING",
    "KEEPING",
    "PREFIX",
    "SERVING",
    "STORE",
    "WEIGHING",
    "RateLimit",
    "SettingLine",
    "Settings",
    "about",
    "describe",
    "load_settings",
    "survey",
    "unknown_variables",
    "variable",
]
