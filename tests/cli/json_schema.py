# SPDX-License-Identifier: Apache-2.0
"""The part of JSON Schema 2020-12 that schema/cli/ uses. An unknown keyword is an error, so that
nothing in a schema goes unchecked."""

import re

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description"}


def has_type(value, name):
    if isinstance(value, bool) and name != "boolean":
        return False
    return isinstance(value, TYPES[name])


def check_object(value, schema, path):
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}: {name} is missing"
    for name, inner in value.items():
        if name in schema.get("properties", {}):
            yield from errors(inner, schema["properties"][name], f"{path}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{path}: {name} is not in the schema"
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from errors(inner, schema["additionalProperties"], f"{path}.{name}")


def resolved(schema, definitions):
    """The schema with each {"$ref": "#/$defs/NAME"} in it replaced by the definition, which has no
    reference to itself."""
    if isinstance(schema, list):
        return [resolved(inner, definitions) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        assert set(schema) == {"$ref"} and schema["$ref"].startswith("#/$defs/"), schema
        return resolved(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    return {name: resolved(inner, definitions) for name, inner in schema.items()}


def errors(value, schema, path="$"):
    """Yields what is wrong with `value`, nothing where it is valid."""
    if "$defs" in schema:
        schema = resolved(schema, schema["$defs"])
    known = ANNOTATIONS | {
        "type", "const", "enum", "pattern", "minimum", "maximum", "minItems", "items",
        "properties", "required", "additionalProperties",
    }  # fmt: skip
    assert set(schema) <= known, f"{path}: json_schema.py does not know {set(schema) - known}"
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(has_type(value, name) for name in names):
            yield f"{path}: {value!r} is no {' or '.join(names)}"
            return
    if "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            yield f"{path}: {value} is outside of its range"
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{path}: has {len(value)} items, at least {schema['minItems']} were expected"
        for i, item in enumerate(value):
            yield from errors(item, schema.get("items", {}), f"{path}[{i}]")
    if isinstance(value, dict):
        yield from check_object(value, schema, path)
