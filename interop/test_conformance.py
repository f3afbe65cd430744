"""The conformance suite of the MCP project, on the production configuration.

The suite cannot send a token, so its requests pass through a proxy that adds one and leaves everything else as it is.
Scenarios that need features which Toolrest does not have, or tools of the suite's own, are in conformance-REVISION.yml; the
run fails too if one of them begins to pass.
"""

import http.client
import http.server
import threading
from pathlib import Path

import pytest
from conftest import NODE, NPM, Server, run


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        length = int(self.headers.get("Content-Length") or 0)
        connection = http.client.HTTPConnection(self.server.address, timeout=120)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() != "connection":
                connection.putheader(name, value)
        connection.putheader("Authorization", f"Bearer {self.server.token}")
        connection.putheader("Connection", "close")
        connection.endheaders(self.rfile.read(length) if length else None)
        response = connection.getresponse()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length", "date"):
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        while part := response.read1(65536):
            self.wfile.write(part)
            self.wfile.flush()
        self.close_connection = True

    do_DELETE = do_GET = do_OPTIONS = do_POST = pass_on

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_server_conforms(tmp_path, revision):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    server = Server(tmp_path / "server", "--dir", folder)
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    proxy.address, proxy.token = server.url.removeprefix("http://"), server.printed(r"key\s+(trk_\S+)")
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    suite = NPM / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    expected = Path(__file__).parent / f"conformance-{revision}.yml"
    url = f"http://127.0.0.1:{proxy.server_address[1]}/mcp"
    command = ["server", "--url", url, "--requirements", revision, "--expected-failures", expected]
    done = run(NODE, suite, *command, cwd=tmp_path)
    proxy.shutdown()
    server.stop()
    assert done.returncode == 0
