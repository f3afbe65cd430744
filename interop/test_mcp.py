"""The official Python client of the Model Context Protocol, over standard input and output and over HTTP."""

import time
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from conftest import TOOLREST
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


def stdio(folder, tmp_path, rules="", **options):
    (tmp_path / "toolrest.toml").write_text(f"[policy]\nwait_ms = 500\nrules = [{rules}]\n")
    arguments = ["mcp", "--dir", folder, "--data-dir", tmp_path / "data", "--config", tmp_path / "toolrest.toml"]
    parameters = StdioServerParameters(command=str(TOOLREST), args=[str(argument) for argument in arguments])
    return Client(parameters, read_timeout_seconds=60, **options)


@asynccontextmanager
async def over_http(server, **options):
    headers = {"Authorization": f"Bearer {server.key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with Client(streamable_http_client(server.url + "/mcp", http_client=http), **options) as client:
            yield client


def nothing_asks(server):
    rules = {"rules": [], "approvals": "off"}
    server.request("PUT", f"/api/v1/workspaces/{server.workspace}/rules", rules, server.token)


def text(result):
    return result.content[0].text


async def lists_and_calls(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools["read"].annotations.read_only_hint
    written = await client.call_tool("write", {"filePath": "b.txt", "content": "two\n"})
    assert not written.is_error
    assert "two" in text(await client.call_tool("read", {"filePath": "b.txt"}))
    missing = await client.call_tool("read", {"filePath": "missing.txt"})
    assert missing.is_error and "missing.txt" in text(missing)
    listed = await client.list_resources()
    assert any(resource.uri.endswith("/b.txt") for resource in listed.resources)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_lists_and_calls_over_stdio(folder, tmp_path, mode):
    async with stdio(folder, tmp_path, mode=mode) as client:
        await lists_and_calls(client)
    assert (folder / "b.txt").read_text() == "two\n"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_lists_and_calls_over_http(server, mode):
    nothing_asks(server)
    async with over_http(server, mode=mode) as client:
        await lists_and_calls(client)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_a_person_answers_the_question_of_a_call(folder, tmp_path, mode, action):
    asked = []

    async def answer(_, params):
        asked.append(params.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

    async with stdio(folder, tmp_path, '"ask write"', mode=mode, elicitation_callback=answer) as client:
        result = await client.call_tool("write", {"filePath": "a.txt", "content": "two\n"})
    assert len(asked) == 1 and "a.txt" in asked[0] and "+two" in asked[0]
    assert result.is_error == (action == "decline")
    assert (folder / "a.txt").read_text() == ("two\n" if action == "accept" else "one\n")


async def test_a_client_that_cannot_ask_is_told_that_the_call_waits(folder, tmp_path):
    async with stdio(folder, tmp_path, '"ask write"') as client:
        result = await client.call_tool("write", {"filePath": "a.txt", "content": "two\n"})
    assert "approval" in text(result).lower()
    assert (folder / "a.txt").read_text() == "one\n"


async def test_over_http_a_call_waits_until_a_person_approves_it(server):
    path = f"/api/v1/workspaces/{server.workspace}"
    server.request("PUT", path + "/rules", {"rules": ["ask write"]}, server.token)
    results = []

    async def write():
        async with over_http(server) as client:
            results.append(await client.call_tool("write", {"filePath": "a.txt", "content": "two\n"}))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        while not (waiting := server.request("GET", path + "/approvals?state=pending", token=server.token)["approvals"]):
            await anyio.sleep(0.1)
        decision = {"decision": "approve", "revision": waiting[0]["revision"]}
        server.request("POST", f"{path}/approvals/{waiting[0]['id']}/decision", decision, server.token)
    assert not results[0].is_error
    async with over_http(server) as client:
        assert "two" in text(await client.call_tool("read", {"filePath": "a.txt"}))


async def test_a_cancelled_call_is_stopped(folder, tmp_path):
    command = "touch started; sleep 3; touch finished"
    async with stdio(folder, tmp_path, mode="legacy") as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "run", {"command": command})
            await anyio.sleep(1.5)
            tasks.cancel_scope.cancel()
        assert not (await client.call_tool("read", {"filePath": "a.txt"})).is_error
        end = time.monotonic() + 4
        while time.monotonic() < end:
            assert not (folder / "finished").exists()
            await anyio.sleep(0.2)
