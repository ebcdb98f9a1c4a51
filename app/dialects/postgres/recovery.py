"""More than the first syntax error: the parser stops there, so the statements after it are tried one by one."""

from app.dialects.errors import SqlError
from app.dialects.postgres.parser import parse_statements, statement_texts


def all_errors(text: str, first: SqlError, limit: int) -> list[SqlError]:
    """Up to `limit` errors in the order of the script, `first` among them."""
    errors = [first]
    if limit <= 1:
        return errors
    try:
        pieces = statement_texts(text)
    except SqlError:
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
