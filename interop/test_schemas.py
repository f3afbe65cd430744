"""The schemas of the tools, as the libraries of those who make models take them."""

import copy
import json
import re
import subprocess

import pytest
from agents.strict_schema import ensure_strict_json_schema
from anthropic import transform_schema
from conftest import TOOLREST
from jsonschema import Draft202012Validator

# OpenAI's strict mode has no objects with free names, so these tools can only be used as functions that are not strict.
WITH_FREE_NAMES = {"apply_patch", "run_code", "start_process", "web_fetch", "write"}


def catalogue(form, tmp_path):
    command = [TOOLREST, "tools", "--format", form, "--dir", tmp_path, "--data-dir", tmp_path / "data"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    toolsets = json.loads(done.stdout)["toolsets"]
    return [tool | {"toolset": toolset["toolset"]} for toolset in toolsets for tool in toolset["tools"]]


@pytest.fixture
def tools(tmp_path):
    tools = catalogue("native", tmp_path)
    assert len(tools) > 40
    return tools


def test_every_schema_is_valid_by_the_metaschema(tools):
    for tool in tools:
        Draft202012Validator.check_schema(tool["input_schema"])
        Draft202012Validator.check_schema(tool["output_schema"])


def test_anthropics_library_takes_every_schema(tools):
    for tool in tools:
        transformed = transform_schema(copy.deepcopy(tool["input_schema"]))
        assert transformed["properties"].keys() == tool["input_schema"]["properties"].keys(), tool["name"]


def test_openais_library_makes_every_schema_strict_except_those_with_free_names(tools):
    refused = set()
    for tool in tools:
        try:
            strict = ensure_strict_json_schema(copy.deepcopy(tool["input_schema"]))
            assert strict["required"] == list(tool["input_schema"]["properties"]), tool["name"]
        except Exception as error:
            assert "additionalProperties" in str(error), f"{tool['name']}: {error}"
            refused.add(tool["name"])
    assert refused <= WITH_FREE_NAMES


@pytest.mark.parametrize("form", ["openai", "anthropic", "mcp"])
def test_the_names_are_those_that_models_take(form, tmp_path):
    for tool in catalogue(form, tmp_path):
        name = tool["function"]["name"] if form == "openai" else tool["name"]
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)


def test_schemas_have_nothing_that_some_models_refuse(tools):
    def check(schema, name, is_agent):
        assert not isinstance(schema.get("type"), list), name
        assert schema.get("default", 0) is not None, name
        assert "$ref" not in schema and "$defs" not in schema and "oneOf" not in schema, name
        if "properties" in schema:
            assert schema["type"] == "object", name
            # The toolset `agent` accepts other names of arguments too, and describes only what is not clear from its name.
            assert is_agent or schema["additionalProperties"] is False, name
        for inner, property in schema.get("properties", {}).items():
            assert is_agent or property.get("description"), f"{name}.{inner} has no description"
            check(property, f"{name}.{inner}", is_agent)
        if isinstance(schema.get("items"), dict):
            check(schema["items"], f"{name}[]", is_agent)

    for tool in tools:
        assert isinstance(tool["input_schema"]["properties"], dict)
        check(tool["input_schema"], tool["name"], tool["toolset"] == "agent")
