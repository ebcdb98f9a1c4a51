"""The compose file as Compose reads it, with the variables of an `.env` in place."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]

_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<rest>[^}]*))?\}")

Service = dict[str, Any]


def raw() -> dict[str, Any]:
    """As it is written, with YAML's anchors resolved."""
    content: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return content


def services() -> dict[str, Service]:
    found: dict[str, Service] = raw()["services"]
    return found


def image(service: Service) -> str:
    """The one that runs where `.env` names no other."""
    return interpolated(service["image"], {})


def ours() -> dict[str, Service]:
    """The services that run our own image."""
    return {name: service for name, service in services().items() if image(service).startswith("headwater:")}


def once() -> set[str]:
    """The services that do one thing and end."""
    return {name for name, service in services().items() if service["restart"] == "on-failure"}


def variables() -> dict[str, str]:
    """Names in `${…}`, with what follows the name: `?` and words for one that must be given, `-` and a default."""
    text = (ROOT / "docker-compose.yml").read_text()
    return {found["name"]: (found["kind"] or "") + (found["rest"] or "") for found in _VARIABLE.finditer(text)}


def without_variables(text: str) -> str:
    return _VARIABLE.sub("", text)


def interpolated(text: str, given: Mapping[str, str]) -> str:
    """Raises `KeyError` for a variable that must be given and is not."""

    def value(found: re.Match[str]) -> str:
        name = found["name"]
        return given.get(name) or found["rest"] if found["kind"] == "-" else given[name]

    return _VARIABLE.sub(value, text)


def environment(service: Service, given: Mapping[str, str]) -> dict[str, str]:
    """What the service's processes find in their environment."""
    return {name: interpolated(value, given) for name, value in service.get("environment", {}).items()}


def command(service: Service) -> list[str]:
    """The whole of it, as a list of arguments."""
    return [*service.get("entrypoint", []), *service.get("command", [])]


def mounts(service: Service) -> dict[str, str]:
    """Path in the container → path in this repository, or name of a volume."""
    pairs = (volume.split(":") for volume in service.get("volumes", []))
    return {target: source for source, target, *_ in pairs}


def options(service: Service, marker: str = "-c") -> dict[str, str]:
    """PostgreSQL's `-c name=value` arguments."""
    arguments = command(service)
    pairs = [arguments[at + 1] for at, argument in enumerate(arguments) if argument == marker]
    return dict(pair.split("=", 1) for pair in pairs)
