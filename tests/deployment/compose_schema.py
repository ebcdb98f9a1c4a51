"""The part of the Compose specification's JSON schema that the compose file uses, with nothing else allowed."""

from typing import Any

_STRINGS = {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True}
_ARGUMENTS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_DURATION = {"type": "string", "pattern": r"^([0-9]+(us|ms|s|m|h))+$"}

_HEALTHCHECK = {
    "type": "object",
    "properties": {
        "test": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 2,
            "prefixItems": [{"enum": ["CMD", "CMD-SHELL"]}],
        },
        "interval": _DURATION,
        "timeout": _DURATION,
        "start_period": _DURATION,
        "retries": {"type": "integer", "minimum": 1},
    },
    "required": ["test", "interval", "timeout", "start_period"],
    "additionalProperties": False,
}
_DEPENDS_ON = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {"condition": {"enum": ["service_healthy", "service_completed_successfully"]}},
        "required": ["condition"],
        "additionalProperties": False,
    },
}
_NETWORKS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": "object", "properties": {"aliases": _STRINGS}, "additionalProperties": False},
}
_IPAM = {
    "type": "object",
    "properties": {
        "config": {
            "type": "array",
            "items": {"type": "object", "properties": {"subnet": {"type": "string"}}, "additionalProperties": False},
        }
    },
    "additionalProperties": False,
}
_SERVICE = {
    "type": "object",
    "properties": {
        "image": {"type": "string"},
        "build": {
            "type": "object",
            "properties": {
                "context": {"type": "string"},
                "args": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "required": ["context"],
            "additionalProperties": False,
        },
        "command": _ARGUMENTS,
        "entrypoint": _ARGUMENTS,
        # Compose turns numbers and booleans into strings of its own choice: only strings are certain.
        "environment": {"type": "object", "additionalProperties": {"type": "string"}},
        "volumes": _STRINGS,
        "ports": _STRINGS,
        "networks": {"anyOf": [_STRINGS, _NETWORKS]},
        "depends_on": _DEPENDS_ON,
        "healthcheck": _HEALTHCHECK,
        "restart": {"enum": ["unless-stopped", "on-failure"]},
        "stop_grace_period": _DURATION,
        "init": {"type": "boolean"},
        "read_only": {"type": "boolean"},
        "tmpfs": _STRINGS,
        "cap_drop": _STRINGS,
        "cap_add": _STRINGS,
        "security_opt": _STRINGS,
        "shm_size": {"type": "string"},
        "ulimits": {"type": "object", "additionalProperties": {"type": "integer"}},
        "logging": {
            "type": "object",
            "properties": {"driver": {"type": "string"}},
            "additionalProperties": False,
        },
    },
    "patternProperties": {"^x-": {}},
    "required": ["image", "restart", "networks", "logging"],
    "additionalProperties": False,
}
_NAMES = r"^[a-zA-Z0-9._-]+$"

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "services": {"type": "object", "patternProperties": {_NAMES: _SERVICE}, "additionalProperties": False},
        "volumes": {"type": "object", "patternProperties": {_NAMES: {"type": "null"}}, "additionalProperties": False},
        "networks": {
            "type": "object",
            "patternProperties": {
                _NAMES: {
                    "type": ["object", "null"],
                    "properties": {"internal": {"type": "boolean"}, "ipam": _IPAM},
                    "additionalProperties": False,
                }
            },
            "additionalProperties": False,
        },
    },
    "patternProperties": {"^x-": {}},
    "required": ["name", "services"],
    "additionalProperties": False,
}
