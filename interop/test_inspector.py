"""The inspector of the MCP project, over standard input and output and over HTTP."""

import json
import os

import pytest
from conftest import NODE, NPM, TOOLREST, run


def inspect(tmp_path, *arguments):
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{NODE.parent}:{os.environ['PATH']}"}
    done = run(NODE, NPM / ".bin" / "mcp-inspector", "--cli", *arguments, env=environment)
    assert done.returncode == 0
    return done


@pytest.mark.parametrize("toolset", [None, "file", "coding", "system", "backend", "workspace"])
def test_it_finds_nothing_to_report_in_the_tools(tmp_path, toolset):
    folder = tmp_path / "folder"
    folder.mkdir()
    command = [TOOLREST, "mcp", "--dir", folder, "--data-dir", tmp_path / "data"]
    command += ["--toolset", toolset] if toolset else []
    done = inspect(tmp_path, "--strict", "--method", "tools/list", "--", *command)
    assert json.loads(done.stdout)["tools"]
    assert "warning" not in done.stderr.lower() and "error" not in done.stderr.lower()


def test_it_lists_and_calls_over_http(tmp_path, server):
    rules = {"rules": [], "approvals": "off"}
    server.request("PUT", f"/api/v1/workspaces/{server.workspace}/rules", rules, server.token)
    target = [server.url + "/mcp", "--header", f"Authorization: Bearer {server.key}"]
    assert json.loads(inspect(tmp_path, *target, "--strict", "--method", "tools/list").stdout)["tools"]
    call = ["--method", "tools/call", "--tool-name", "write", "--tool-arg", "filePath=a.txt", "content=one"]
    assert not json.loads(inspect(tmp_path, *target, *call).stdout).get("isError")
    call = ["--method", "tools/call", "--tool-name", "read", "--tool-arg", "filePath=a.txt"]
    assert "one" in json.loads(inspect(tmp_path, *target, *call).stdout)["content"][0]["text"]
