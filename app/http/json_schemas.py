"""JSON Schemas of the request and answer structs, from msgspec, which also validates them."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec
from msgspec import NODEFAULT, inspect

_PREFIX = "#/components/schemas/"


def reference(kind: Any) -> dict[str, str]:
    """A reference to a struct's component."""
    return {"$ref": _reference(kind)}


@cache
def _reference(kind: Any) -> str:
    """Remembered: each operation refers to the same few, and each reference costs a walk through the struct."""
    (found,), _ = msgspec.json.schema_components([kind], ref_template=_PREFIX + "{name}")
    return str(found["$ref"])


def components(bodies: Iterable[Any], answers: Iterable[Any]) -> dict[str, Any]:
    """The components of these structs and of all structs within them. In answers every field is present, except
    those that may be unset. The default of a body's field is in its description: some generators treat a field with
    a `default` as required."""
    bodies, answers = list(bodies), list(answers)
    _, found = msgspec.json.schema_components([*bodies, *answers], ref_template=_PREFIX + "{name}")
    for struct in _structs(answers):
        component = found[reference(struct.cls)["$ref"].removeprefix(_PREFIX)]
        component["required"] = [field.encode_name for field in struct.fields if not _may_be_unset(field)]
    sent = {reference(struct.cls)["$ref"].removeprefix(_PREFIX) for struct in _structs(bodies)}
    for name, component in found.items():
        for field in component.get("properties", {}).values():
            _describe_default(field, sent=name in sent)
    return {name: _tidy(schema) for name, schema in sorted(found.items())}


def _describe_default(field: dict[str, Any], *, sent: bool) -> None:
    if "default" not in field:
        return
    default = field.pop("default")
    if sent and default is not None:
        default_text = (
            f"`{default if isinstance(default, str) else msgspec.json.encode(default).decode()}` unless given."
        )
        field["description"] = " ".join(part for part in (field.get("description"), default_text) if part)


def _structs(types: Iterable[Any]) -> list[inspect.StructType]:
    """All structs among these types and within them."""
    found: dict[Any, inspect.StructType] = {}
    waiting = list(inspect.multi_type_info(types))
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, inspect.StructType) and kind.cls not in found:
            found[kind.cls] = kind
            waiting += [field.type for field in kind.fields]
        elif isinstance(kind, inspect.UnionType):
            waiting += kind.types
        elif isinstance(kind, inspect.CollectionType):
            waiting.append(kind.item_type)
        elif isinstance(kind, inspect.DictType):
            waiting.append(kind.value_type)
    return list(found.values())


def _may_be_unset(field: inspect.Field) -> bool:
    """A union with `UnsetType` is the only kind of field that is neither required nor has a default."""
    return not field.required and field.default is NODEFAULT and field.default_factory is NODEFAULT


def _tidy(schema: Any) -> Any:
    """Translates patterns to JSON Schema's dialect (ECMA-262), and marks objects with arbitrary fields as such:
    without the mark some generators expect an object without fields. A `Decimal` is sent as a whole number."""
    if isinstance(schema, dict):
        if schema.get("format") == "decimal":
            schema = {key: value for key, value in schema.items() if key != "format"} | {"type": "integer"}
        if "prefixItems" in schema or schema == {"type": "array"}:
            # Generators want a schema there, and stumble over `false`: that nothing follows, `maxItems` says too.
            schema = schema | {"items": {}}
        anything = {"additionalProperties": True} if schema == {"type": "object"} else {}
        return anything | {
            key: value.replace(r"\A", "^").replace(r"\Z", "$") if key == "pattern" else _tidy(value)
            for key, value in schema.items()
        }
    return [_tidy(item) for item in schema] if isinstance(schema, list) else schema
