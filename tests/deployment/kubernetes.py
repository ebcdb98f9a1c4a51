"""Kubernetes' own schemas, as `kubernetes-validate` has them, strictly: no field is allowed that they don't name.

That package reads a version's definitions anew for each object, which are two megabytes.
"""

import re
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types
from kubernetes_validate.utils import schema_contents  # type: ignore[import-untyped]  # it has no types
from referencing import Registry, Resource


def validate(one: dict[str, Any], version: str) -> None:
    """Raises `jsonschema.ValidationError`, and `FileNotFoundError` for a kind that the version doesn't have."""
    # As in the names of the schemas: networking.k8s.io/v1 is networking-v1.
    api_version = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", one["apiVersion"])
    _validator(version, f"{one['kind'].lower()}-{api_version}").validate(one)


@cache
def _validator(version: str, name: str) -> Draft202012Validator:
    schema = schema_contents(f"{_folder(version)}/{name}.json", version)
    registry: Registry[Any] = Resource.from_contents(schema) @ (_definitions(version) @ Registry())
    return Draft202012Validator(schema, registry=registry)


@cache
def _definitions(version: str) -> Resource[Any]:
    return Resource.from_contents(schema_contents(f"{_folder(version)}/_definitions.json", version))


def _folder(version: str) -> str:
    return f"kubernetes-json-schema/v{version}.0-local-strict"
