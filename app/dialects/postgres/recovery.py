"""More than the first syntax error: the parser stops there, so the statements after it are tried one by one."""

from postgast import PgQueryError, split

from app.dialects.errors import SqlError
from app.dialects.postgres.lexer import tokens
from app.dialects.postgres.parser import parse_statements


def all_errors(text: str, first: SqlError, limit: int) -> list[SqlError]:
    """Up to `limit` errors in the order of the script, `first` among them. Call it on a deep stack."""
    errors = [first]
    if limit <= 1:
        return errors
    try:
        # What our own lexer can't read might bring down the C scanner.
        for _ in tokens(text):
            pass
        pieces = split(text, method="scanner")
    except (SqlError, PgQueryError):
        return errors
    at = 0
    for piece in pieces:
        start = text.find(piece, at)
        if start == -1:
            break
        at = start + len(piece)
        if at <= first.offset:
            continue
        try:
            parse_statements(piece)
        except SqlError as error:
            if start + error.offset > first.offset:
                errors.append(SqlError(start + error.offset, error.message))
        if len(errors) >= limit:
            break
    return errors
