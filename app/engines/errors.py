"""What can go wrong on an engine host, whichever engine it is."""


class EngineError(Exception):
    """An engine refused or could not be asked. The tree:

    EngineError             the engine answered with an error that another try may mend
    ├── HostUnavailable     nobody answers, or the host takes no connection: another host may serve
    ├── NameTaken           the name exists and is not ours: never touch it, take another name
    └── LoginRefused        the tenant's own credentials were refused
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
