"""The clients for TypeScript and Python, against a real server."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import NODE, NPM, run
from generate_clients import CLIENTS, generated

sys.path.insert(0, str(CLIENTS / "python"))
from toolrest import ApprovalRequired, ToolrestError, ToolsClient  # noqa: E402


def test_the_types_are_those_of_the_description():
    for path, text in generated().items():
        assert path.read_text() == text, f"{path.name} is out of date; run `make clients`"


def test_the_python_client_calls_tools_and_routes(server):
    client, workspace = ToolsClient(server.url, server.key), server.workspace
    client.write(workspace, "/notes/new-file.md", {"text": "Hello from Tools API!"})
    client.touch(workspace, "/notes/placeholder.txt")
    client.mkdir(workspace, "/docs")
    client.mv(workspace, "/notes/new-file.md", "/docs/thoughts.md")
    client.edit(workspace, "/docs/thoughts.md", "Hello", "Greetings")
    assert client.read(workspace, "/docs/thoughts.md")["result"]["content"] == "Greetings from Tools API!"
    assert len(client.grep(workspace, "Greetings")["result"]["matches"]) == 1
    client.rm(workspace, "/notes/placeholder.txt")
    names = [entry["name"] for entry in client.ls(workspace, "/", recursive=True)["result"]["entries"]]
    assert "thoughts.md" in names and "placeholder.txt" not in names
    assert client.call(workspace, "file", "file_read", {"path": "docs/thoughts.md"})["content"].endswith("Greetings from Tools API!")
    commits = client.request("GET", f"/api/v1/workspaces/{workspace}/commits", query={"limit": 3})["commits"]
    assert len(commits) == 3
    with pytest.raises(ToolrestError) as failure:
        client.read(workspace, "/missing.txt")
    assert failure.value.status == 404 and "missing.txt" in str(failure.value)


def test_the_python_client_says_that_a_call_waits(server):
    rules = {"rules": ["ask write"]}
    server.request("PUT", f"/api/v1/workspaces/{server.workspace}/rules", rules, server.token)
    client = ToolsClient(server.url, server.key)
    with pytest.raises(ApprovalRequired) as waiting:
        client.call(server.workspace, "workspace", "write", {"path": "/a.txt", "content": "a"}, wait=0, reason="a test")
    person = ToolsClient.sign_in(server.url, "person@example.com", "long enough for a test")
    path = f"/api/v1/workspaces/{server.workspace}/approvals/{waiting.value.approval_id}"
    assert person.request("GET", path)["approval"]["reason"] == "a test"


def test_the_python_client_is_typed():
    done = run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, CLIENTS / "python" / "toolrest")
    assert done.returncode == 0


def test_the_typescript_client_calls_tools_and_routes(server, tmp_path):
    project = tmp_path / "typescript"
    shutil.copytree(CLIENTS / "typescript", project, ignore=shutil.ignore_patterns("node_modules", "dist"))
    shutil.copy(Path(__file__).parent / "client.test.ts", project / "src")
    done = run(NODE, NPM / "typescript" / "bin" / "tsc", "--project", project)
    assert done.returncode == 0
    arguments = [server.url, server.workspace, server.key, server.token]
    subprocess.run([NODE, project / "dist" / "client.test.js", *arguments], check=True, timeout=60)
