"""A statement read with every rule that the judge applies to a signed one, in one step."""

from app.core.bundle import Statement
from app.core.statement import read_statement, refuse_statement_type, require_subject_digest


def parse_statement(payload: bytes) -> Statement:
    """Read a statement of a known type whose first subject has a sha256 digest; raises `DocumentInvalid`."""
    statement = read_statement(payload)
    refuse_statement_type(statement)
    require_subject_digest(statement)
    return statement
