"""The roles that a dump names, in the terms of the database that it is loaded into.

A dump names roles in grants and in policies: its tenant's own, logins of rotations, users, and whoever else the tenant
has granted something. In another database the tenant has another name, and a role of the old name may be somebody
else's, who then couldn't be dropped any more.

Users and logins are carried where the dump comes back to its own database: there they are the same accounts. A user of
another database is somebody else, whatever its number.
"""

import re
from collections.abc import Collection, Iterator
from itertools import pairwise

from app.engines.postgres.quoting import quote_name

_TOKEN = re.compile(r"""\s+|"(?:[^"]|"")*"|'(?:[^']|'')*'|[A-Za-z_][A-Za-z0-9_$]*|.""", re.DOTALL)
_NAME = r'(?:"(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_$]*)'
_DEFAULT_RIGHTS = re.compile(
    rf"ALTER DEFAULT PRIVILEGES FOR ROLE (?P<maker>{_NAME})(?: IN SCHEMA {_NAME})?"
    r" (?:GRANT|REVOKE)(?: GRANT OPTION FOR)? [A-Z]+(?: , [A-Z]+)*"
    rf" ON (?:TABLES|SEQUENCES|FUNCTIONS|TYPES|SCHEMAS|LARGE OBJECTS) (?:TO|FROM) (?P<to>{_NAME})"
    r"(?: WITH GRANT OPTION)?"
)
_POLICY = re.compile(rf"(?:CREATE|COMMENT ON) POLICY (?P<policy>{_NAME} ON {_NAME}\.{_NAME})")
_PREDEFINED = "pg_"
_EVERYBODY = "PUBLIC"


class RoleNames:
    def __init__(self, source: str, target: str, carried: Collection[str]) -> None:
        """`source` and `target` are the tenants' names, `carried` are the accounts that keep theirs."""
        self._source = source
        self._target = target
        self._carried = carried

    def named(self, role: str) -> str | None:
        """The role in the target's terms; None if it has none."""
        if role == _EVERYBODY or role.startswith(_PREDEFINED):
            return role
        if role == self._source:
            return self._target
        return role if role in self._carried else None

    def granted(self, text: str) -> str:
        """The statements of an entry with rights, without those for or by roles that the target doesn't have."""
        kept, as_another = [], False
        for statement in _statements(text):
            words = [token.upper() for token in statement if not token.isspace()]
            if words[:3] in (["SET", "SESSION", "AUTHORIZATION"], ["RESET", "SESSION", "AUTHORIZATION"]):
                # What another role granted, who isn't there.
                as_another = words[0] == "SET"
            elif not as_another and (written := self._in_statement(statement)) is not None:
                kept.append(written)
        return "".join(f"{statement};\n" for statement in kept)

    def given_by_accounts(self, text: str) -> Iterator[str]:
        """The statements of an entry with default rights by which an account that is carried says what others may do
        with what it makes. Each has the one form that the tool writes, so that it can be run by somebody with more
        rights than its writer. Raises `ValueError` for another form."""
        for statement in _statements(text):
            words = [token for token in statement if not token.isspace()]
            written = " ".join(words)
            form = _DEFAULT_RIGHTS.fullmatch(written)
            if form is None:
                if "DEFAULT" in map(str.upper, words):
                    raise ValueError(f"default rights in a form that is not known: {written[:200]}")
                continue
            whose = self.named(_plain(form["to"]))
            if _plain(form["maker"]) in self._carried and whose is not None:
                to = whose if whose == _EVERYBODY else quote_name(whose)
                yield f"{written[: form.start('to')]}{to}{written[form.end('to') :]}"

    def policy(self, text: str) -> str:
        """A statement that makes a policy, empty if it would be for nobody."""
        tokens, conditions = _head(text)
        at = _after(tokens, "TO")
        if at is None:
            return text
        # Names and commas, until a word that isn't followed by a comma.
        roles, expecting = [], True
        for end in range(at, len(tokens)):
            if tokens[end] == ",":
                expecting = True
            elif not tokens[end].isspace():
                if not expecting:
                    break
                roles.append(tokens[end])
                expecting = False
        else:
            end = len(tokens)
        present = [named for role in roles if role != ";" and (named := self.named(_plain(role))) is not None]
        if not present:
            return ""
        rest = "".join(tokens[end:]) + conditions
        return "".join(tokens[:at]) + " " + ", ".join(present) + (f" {rest}" if rest != ";" else rest)

    def _in_statement(self, tokens: list[str]) -> str | None:
        """The statement in the target's terms; None for one about a role that the target doesn't have."""
        before = [""] * 2
        written = []
        for token in tokens:
            word = token.upper()
            if not token.isspace():
                makes = before == ["FOR", "ROLE"]
                if before[1] in ("TO", "FROM") or makes:
                    named = self.named(_plain(token))
                    # Nobody but an account itself says what others may do with what it makes.
                    if named is None or (makes and named != self._target):
                        return None
                    token = named
                before = [before[1], word]
            written.append(token)
        return "".join(written).strip()


def policy_named(text: str) -> str | None:
    """The policy that a statement makes, or comments on, with its table, as the tool writes both names in either; None
    for another statement."""
    found = _POLICY.match(text)
    return None if found is None else found["policy"]


def without(role: str, text: str) -> str:
    """The statements of an entry with rights, except those to or from this role."""
    kept = []
    for statement in _statements(text):
        words = [_plain(token) for token in statement if not token.isspace()]
        of = {after for word, after in pairwise(words) if word.upper() in ("TO", "FROM")}
        if role not in of:
            kept.append("".join(statement).strip())
    return "".join(f"{statement};\n" for statement in kept)


def _head(text: str) -> tuple[list[str], str]:
    """The tokens before a policy's conditions, and the conditions: these may be as long as a server takes, and have a
    TO of their own, as in `interval day to hour`."""
    tokens: list[str] = []
    for found in _TOKEN.finditer(text):
        if found[0].upper() in ("USING", "WITH"):
            return tokens, text[found.start() :]
        tokens.append(found[0])
    return tokens, ""


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _statements(text: str) -> Iterator[list[str]]:
    statement: list[str] = []
    for one in _tokens(text):
        if one != ";":
            statement.append(one)
        elif statement:
            yield statement
            statement = []


def _after(tokens: list[str], word: str) -> int | None:
    """The place after this word, which isn't quoted."""
    return next((at + 1 for at, token in enumerate(tokens) if token.upper() == word), None)


def _plain(token: str) -> str:
    return token[1:-1].replace('""', '"') if token.startswith('"') else token
