"""Random values that the chart's schema takes, to render objects from."""

from random import Random
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types

_TEXTS = {
    "^[0-9a-fA-F.:]+/[0-9]{1,3}$": ("10.1.0.0/16", "192.0.2.7/32", "2001:db8::/32"),
    "^[0-9.]+(m|k|Ki|M|Mi|G|Gi|T|Ti)?$": ("250m", "1.5", "512Mi", "2Gi"),
    "^[a-z0-9]+(-[a-z0-9]+)*$": ("eu-west-1", "a", "x1-y2-z3"),
    "^(debug|info|warning|error)$": ("debug", "error"),
    "^https?://": ("https://id.example.com", "http://[::1]:8080/{plain}"),
    r"^https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?$": ("https://db.example.com", "http://[::1]:8080"),
}
_PLAIN = ("a", "some-name", "nöt: {plain}", "true", "1e3", '"', "{{ nothing }}")
_PLAIN_NAMES = ("a", "some-name", "b.c")
_FREE = {"value", "openaiBaseUrl", "region", "endpointUrl"}
"""Strings that Kubernetes takes as they are; the others are names of its objects, labels or keys."""


class RandomValues:
    def __init__(self, schema: dict[str, Any], seed: int) -> None:
        self._schema = schema
        self._random = Random(seed)

    def values(self) -> dict[str, Any]:
        made: dict[str, Any] = self._make(self._schema, "")
        made["regions"] = list({one["name"]: one for one in made["regions"]}.values())
        if made.get("ingress", {}).get("enabled"):
            made["ingress"] |= {"host": "db.example.com", "tlsSecretName": "tls", "proxies": ["10.0.0.0/8"]}
        jsonschema.Draft7Validator(self._schema).validate(made)
        return made

    def _make(self, shape: dict[str, Any], name: str) -> Any:
        pick = self._random
        if "$ref" in shape:
            return self._make(self._schema["definitions"][shape["$ref"].rpartition("/")[2]], name)
        if alternatives := shape.get("anyOf") or shape.get("oneOf"):
            return self._make(pick.choice(alternatives), name)
        if "enum" in shape:
            return pick.choice(shape["enum"])
        match shape["type"]:
            case "object":
                return self._object(shape)
            case "array":
                return [self._make(shape["items"], name) for _ in range(pick.randint(shape.get("minItems", 0), 3))]
            case "boolean":
                return pick.random() < 0.5
            case "null":
                return None
            case "integer" | "number":
                numbers = (443, 5432) if shape.get("maximum") == 65_535 else (1, 20, 443, 2_592_000)
                return min(max(pick.choice(numbers), shape.get("minimum", 0)), shape.get("maximum", 2_592_000))
            case _:
                texts = _TEXTS.get(shape.get("pattern", ""))
                return pick.choice(texts or (_PLAIN if name in _FREE or "_" in name else _PLAIN_NAMES))

    def _object(self, shape: dict[str, Any]) -> dict[str, Any]:
        pick, needed = self._random, set(shape.get("required", ()))
        properties = dict(shape.get("properties", {}))
        if not properties and isinstance(shape.get("additionalProperties"), dict):
            prefix = "OTEL_K" if "propertyNames" in shape else "example.com/k"
            return {f"{prefix}{number}": pick.choice(_PLAIN_NAMES) for number in range(pick.randint(0, 2))}
        chosen = [key for key in properties if key in needed or pick.random() < 0.4]
        if shape.get("minProperties") and not chosen:
            chosen = [pick.choice(list(properties))]
        return {key: self._make(properties[key], key) for key in chosen}
