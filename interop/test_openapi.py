"""The OpenAPI description: whether it is valid, and whether the server does what it says for generated requests."""

import sys
from pathlib import Path

from conftest import Server, run
from openapi_spec_validator import validate

# These never end, or end what the other requests need.
LEFT_OUT = ["events", "delete_workspace", "remove_member", "logout"]
CHECKS = "not_a_server_error,ignored_auth,response_schema_conformance,content_type_conformance,status_code_conformance"
SECONDS = 150


def test_the_description_is_valid(server):
    description = server.request("GET", "/api/openapi.json")
    assert description["openapi"].startswith("3.1")
    validate(description)


def test_generated_requests_get_described_answers_and_none_passes_without_a_token(tmp_path):
    # Sign-ins with wrong passwords would lock the test out.
    settings = "[auth]\nattempts_per_address = 1000000\nregistrations_per_address = 1000000\n[policy]\nwait_ms = 0\n"
    server = Server(tmp_path / "server", settings=settings).sign_in()
    configuration = tmp_path / "schemathesis.toml"
    configuration.write_text(
        "[parameters]\n"
        f'"path.workspace" = "{server.workspace}"\n'
        "[checks.not_a_server_error]\n"
        # 501: the tool needs something that the operator has not set up. 504: a program exceeded the time that it was given.
        'expected-statuses = ["2xx", "3xx", "4xx", "501", "504"]\n'
    )
    command = [Path(sys.executable).with_name("schemathesis"), "--config-file", configuration, "run"]
    command += [server.url + "/api/openapi.json", "--header", f"Authorization: Bearer {server.token}"]
    command += ["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-time", str(SECONDS)]
    command += ["--max-examples", "20", "--seed", "1", "--generation-database", "none", "--no-color"]
    command += ["--request-timeout", "60", "--continue-on-failure", "--report-dir", tmp_path / "report"]
    for operation in LEFT_OUT:
        command += ["--exclude-operation-id", operation]
    done = run(*command, seconds=3 * SECONDS, cwd=tmp_path)
    assert "panicked" not in (tmp_path / "server" / "log").read_text()
    server.stop()
    assert done.returncode == 0
