"""Writes the types of the clients from the OpenAPI description of a server: `make clients`."""

import json
import re
import sys
import tempfile
from pathlib import Path

from conftest import NODE, NPM, Server, run

CLIENTS = Path(__file__).parent.parent / "clients"
TYPESCRIPT = CLIENTS / "typescript" / "src" / "api.ts"
PYTHON = CLIENTS / "python" / "toolrest" / "types.py"


def typescript(description):
    """Returns the types that openapi-typescript makes."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "openapi.json", Path(folder) / "api.ts"
        source.write_text(json.dumps(description))
        done = run(NODE, NPM / ".bin" / "openapi-typescript", source, "--output", result)
        assert done.returncode == 0
        return result.read_text()


class PythonTypes:
    """Makes Python types from JSON schemas: a TypedDict for each object with members."""

    NAMES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

    def __init__(self, schemas):
        self.schemas = schemas
        self.lines = []

    @staticmethod
    def name(text):
        return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^a-zA-Z0-9]+", text))

    def write(self):
        for name, schema in self.schemas.items():
            name = self.name(name)
            kind = self.kind(schema, name)
            if kind != name:
                self.lines += [f'{name}: TypeAlias = "{kind}"', ""]
        head = ['"""The types of the interface, written by `make clients` from its OpenAPI description."""', ""]
        head += ["from typing import Any, Literal, NotRequired, TypeAlias, TypedDict", ""]
        return "\n".join(head + self.lines)

    def kind(self, schema, name):
        """Returns the type of a schema. Objects get the name."""
        if schema is True or not schema:
            return "Any"
        if "$ref" in schema:
            return self.name(schema["$ref"].rsplit("/", 1)[1])
        if "const" in schema or "enum" in schema:
            values = schema.get("enum", [schema.get("const")])
            return f"Literal[{', '.join(repr(value) for value in values)}]"
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return self.union(schema, schema[several], name)
        if "allOf" in schema and len(schema["allOf"]) == 1:
            return self.kind(schema["allOf"][0], name)
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return " | ".join(self.simple(schema, kind, name) for kind in kinds) or "Any"

    def simple(self, schema, kind, name):
        if kind == "array":
            return f"list[{self.kind(schema.get('items', True), name + 'Item')}]"
        if kind != "object":
            return self.NAMES[kind]
        if "properties" not in schema:
            return f"dict[str, {self.kind(schema.get('additionalProperties', True), name + 'Value')}]"
        required = schema.get("required", [])
        members = []
        for member, inner in schema["properties"].items():
            inner = self.kind(inner, name + self.name(member))
            members.append(f'    "{member}": "{inner if member in required else f"NotRequired[{inner}]"}",')
        self.lines += [f'{name} = TypedDict("{name}", {{', *members, "})", ""]
        return name

    def union(self, schema, alternatives, name):
        """Members beside the alternatives belong to each of them."""
        beside = {key: value for key, value in schema.items() if key in ("properties", "required")}
        kinds = []
        for number, alternative in enumerate(alternatives):
            if beside and isinstance(alternative, dict):
                alternative = {
                    **alternative,
                    "type": "object",
                    "properties": {**beside.get("properties", {}), **alternative.get("properties", {})},
                    "required": beside.get("required", []) + alternative.get("required", []),
                }
            kind = self.kind(alternative, f"{name}{number + 1}")
            if kind not in kinds:
                kinds.append(kind)
        return " | ".join(kinds)


def generated():
    """Returns the types by file, made from a server."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        description = server.request("GET", "/api/openapi.json")
        server.stop()
    return {TYPESCRIPT: typescript(description), PYTHON: PythonTypes(description["components"]["schemas"]).write()}


if __name__ == "__main__":
    for path, text in generated().items():
        path.write_text(text)
        print(f"wrote {path}", file=sys.stderr)
