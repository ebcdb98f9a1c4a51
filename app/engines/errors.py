"""What can go wrong on an engine host, whichever engine it is."""

MAX_MESSAGE = 2000
"""Characters of a server's message that are shown: a tenant may write a megabyte into one."""


def shortened(message: str) -> str:
    """A server's message as it may be shown."""
    return message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…"


class EngineError(Exception):
    """An engine refused or could not be asked. The tree:

    EngineError             the engine answered with an error that another try may mend
    ├── HostUnavailable     nobody answers, or the host takes no connection: another host may serve
    ├── NameTaken           the name exists and is not ours: never touch it, take another name
    ├── LoginRefused        the tenant's own credentials were refused
    │   └── CredentialsRefused  its account is not as it was made: another password, or a setting of its own
    ├── TenantFull          the tenant itself holds all its sessions
    ├── AnswerTooLarge      the answer was cut off: it has more octets than are taken into memory
    ├── StatementFailed     the server refused one statement of a tenant's script
    └── StatementUncertain  nobody can tell whether one took effect
    """

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        """The engine's own: an SQLSTATE or a MySQL error number, when it gave one."""


class HostUnavailable(EngineError):
    """The host can't be reached, is starting, shutting down, out of connections or out of disk."""


class NameTaken(EngineError):
    """A database or role of this name exists and carries no marker of ours, or another's."""


class LoginRefused(EngineError):
    """The tenant's credentials don't log in."""


class CredentialsRefused(LoginRefused):
    """The account doesn't take the password that it was made with, or ends every login by a setting: both are a
    tenant's to change, and `EngineAdapter.restore_credentials` undoes both."""


class TenantFull(EngineError):
    """All sessions that the tenant may hold are open. Its credentials were accepted."""


class StatementFailed(EngineError):
    """The server refused one statement of a script. The message is the server's own, for whoever wrote the statement:
    it may quote what is in it."""

    def __init__(
        self, message: str, *, code: str | None = None, position: int | None = None, wants_data: bool = False
    ) -> None:
        super().__init__(message, code=code)
        self.position = position
        """Of the fault, in characters from the statement's beginning, where the server tells."""
        self.wants_data = wants_data
        """It may be for want of data that it failed, such as a row that another refers to."""


class StatementUncertain(EngineError):
    """A statement was stopped, or its session was lost, and nobody can tell whether it took effect."""
