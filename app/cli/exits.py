"""Process exit codes: upstream's categories (evidence-format 0) and the verifier's (8.4)."""

from app.core.errors import Category, ServiceError

OK = 0
DIFFERENCES = 1
INVALID = 2
NO_VERDICT = 5
UNREACHABLE = 6
INTERNAL = 8
CANCELED = 9

_BY_CATEGORY = {
    Category.INVALID_REQUEST: 2,
    Category.CONFLICT: 2,
    Category.NOT_FOUND: 3,
    Category.UNAUTHORIZED: 4,
    Category.TIMEOUT: 5,
    Category.UNAVAILABLE: 6,
    Category.RATE_LIMITED: 7,
    Category.INTERNAL: 8,
    Category.CANCELED: 9,
}


def exit_of(err: ServiceError) -> int:
    """The exit code of an error that ends a command."""
    return _BY_CATEGORY[err.category]
