"""The GitHub tools against a server that is made from GitHub's own description of its API, and refuses what does not fit it."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from conftest import NODE, START_SECONDS, TARGET, Server

NPM = TARGET / "interop" / "github" / "node_modules"
PULL_REQUEST = "/repos/{owner}/{repo}/pulls/{pull_number}"
# What the tools use. The whole description would take prism minutes to read.
USED = {
    "/user/repos": ["post"],
    "/orgs/{org}/repos": ["post"],
    PULL_REQUEST: ["get"],
    PULL_REQUEST + "/files": ["get"],
    PULL_REQUEST + "/merge": ["put"],
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": ["post"],
    "/repos/{owner}/{repo}/contents/{path}": ["get", "put"],
}


def description():
    """Returns GitHub's description of what the tools use."""
    api = json.loads((NPM / "@octokit/openapi/generated/api.github.com.json").read_text())
    api["paths"] = {path: {method: api["paths"][path][method] for method in methods} for path, methods in USED.items()}
    # GitHub also answers in its own media type, which it recommends and does not describe.
    contents = [answer["content"] for path in api["paths"].values() for operation in path.values()
                for answer in operation["responses"].values() if "content" in answer]
    contents += [answer["content"] for answer in api["components"]["responses"].values() if "content" in answer]
    for content in contents:
        if "application/json" in content:
            content["application/vnd.github+json"] = content["application/json"]
    return api


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class GitHub:
    def __init__(self, folder):
        (folder / "github.json").write_text(json.dumps(description()))
        self.url, self.log = f"http://127.0.0.1:{(port := free_port())}", folder / "prism.log"
        command = [NODE, NPM / ".bin" / "prism", "mock", folder / "github.json", "--port", str(port)]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        for _ in range(START_SECONDS * 10):
            if "is listening" in self.log.read_text():
                return
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.1)
        raise AssertionError(self.log.read_text())


@pytest.fixture(scope="module")
def github(tmp_path_factory):
    github = GitHub(tmp_path_factory.mktemp("github"))
    yield github
    github.process.terminate()
    github.process.wait(timeout=30)


@pytest.fixture(scope="module")
def server(github, tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"), settings=f'[github]\napi_url = "{github.url}"\n').sign_in()
    secret = {"value": "ghp_0123456789abcdef0123456789abcdef0123"}
    server.request("PUT", f"/api/v1/workspaces/{server.workspace}/secrets/GITHUB_TOKEN", secret, server.token)
    yield server
    server.stop()


def call(server, tool, **args):
    body = {"tool": tool, "args": args, "correlationId": "interop"}
    try:
        answer = server.request("POST", f"/api/v1/workspaces/{server.workspace}/toolsets/backend", body, server.token)
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{tool}: {error.read().decode()}") from error
    return answer["result"]


def test_the_server_refuses_what_does_not_fit(github):
    """So that the other tests can fail."""
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Authorization": "Bearer x"}
    body = json.dumps({"merge_method": "octopus"}).encode()
    request = urllib.request.Request(f"{github.url}/repos/o/r/pulls/1/merge", body, headers, method="PUT")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=30)
    assert refused.value.code == 422


def test_every_request_of_the_tools_fits(server, github):
    before = len(github.log.read_text())
    pull_request = f"{github.url}/octocat/Hello-World/pull/1347"
    assert call(server, "github_create_repo", name="demo", description="demo", is_private=False)["repo_url"]
    assert call(server, "github_create_repo", name="octo-org/demo")["repo_url"]
    details = call(server, "github_get_pr_details", pr_url=pull_request)
    assert details["title"] and details["files"]
    assert call(server, "github_post_pr_comment", pr_url=pull_request, comment="Looks good")["message"] == "Comment posted"
    for method in ["merge", "squash", "rebase"]:
        assert call(server, "github_merge_pr", pr_url=pull_request, method=method)["message"] == "PR merged"
    sha = call(server, "github_create_file_in_repo", repo_name="octocat/Hello-World", path="README.md", content="# Hello",
               commit_message="Add readme")["commit_sha"]
    assert sha
    assert "Violation: request" not in github.log.read_text()[before:]
