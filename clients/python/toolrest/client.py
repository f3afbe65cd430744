"""The client, with the standard library only."""

import json
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Mapping
from typing import Any, Generic, Literal, TypedDict, TypeVar, cast

from toolrest import types

Result = TypeVar("Result")

# Where the result is in the answer of a toolset.
_INSIDE = {"workspace": "result", "backend": "result", "system": "value"}


class ToolResponse(TypedDict, Generic[Result]):
    """The answer of a tool of the toolset `workspace`."""

    success: Literal[True]
    result: Result
    error: None


class ToolrestError(Exception):
    """An error that the server answered."""

    def __init__(self, message: str, status: int, code: str, body: Any) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.body = body


class ApprovalRequired(ToolrestError):
    """The call waits for a person. The same call again waits on and never runs twice."""

    def __init__(self, message: str, body: Any) -> None:
        super().__init__(message, 202, "APPROVAL_REQUIRED", body)
        self.approval_id: str = body["approval"]["id"]


class ToolsClient:
    def __init__(self, base_url: str, access_token: str | None = None, timeout: float = 120) -> None:
        self._base_url = base_url.rstrip("/")
        self._access_token = access_token
        self._timeout = timeout

    @classmethod
    def sign_in(cls, base_url: str, email: str, password: str) -> "ToolsClient":
        """Signs in, and returns a client with the access token."""
        body = {"email": email, "password": password}
        session: types.SessionAnswer = cls(base_url).request("POST", "/api/v1/auth/login", body)
        return cls(base_url, session["access_token"])

    def request(
        self, method: str, path: str, body: Any = None, query: Mapping[str, str | int] | None = None
    ) -> Any:
        """Sends a request of the REST interface, and returns the JSON of its answer."""
        if query:
            path += "?" + urllib.parse.urlencode(query)
        return self._send(method, path, body, {})

    def call(
        self,
        workspace_id: str,
        toolset: str,
        tool: str,
        args: Mapping[str, Any],
        *,
        wait: float | None = None,
        reason: str | None = None,
        session: str | None = None,
        correlation_id: str | None = None,
    ) -> Any:
        """Calls a tool of any toolset, and returns its result.

        `wait` is the time in seconds to wait for a person's decision, `reason` is shown to that person, and `session` is the
        label to which grants are limited.
        """
        headers = {"X-Correlation-ID": correlation_id or str(uuid.uuid4())}
        if wait is not None:
            headers["Prefer"] = f"wait={int(wait)}"
        if reason is not None:
            headers["X-Toolrest-Reason"] = reason
        if session is not None:
            headers["X-Toolrest-Session"] = session
        path = f"/api/v1/workspaces/{_quoted(workspace_id)}/toolsets/{_quoted(toolset)}"
        answer = self._send("POST", path, {"tool": tool, "args": args}, headers)
        return answer[_INSIDE[toolset]] if toolset in _INSIDE else answer

    def execute_tool(self, workspace_id: str, tool: str, args: Mapping[str, Any]) -> ToolResponse[Any]:
        """Calls a tool of the toolset `workspace`, and returns the whole answer."""
        return {"success": True, "result": self.call(workspace_id, "workspace", tool, args), "error": None}

    def ls(self, workspace_id: str, path: str, recursive: bool = False) -> ToolResponse[types.WorkspaceLsResult]:
        return self.execute_tool(workspace_id, "ls", {"path": path, "recursive": recursive})

    def read(self, workspace_id: str, path: str) -> ToolResponse[types.WorkspaceReadResult]:
        return self.execute_tool(workspace_id, "read", {"path": path})

    def write(
        self, workspace_id: str, path: str, content: str | Mapping[str, Any]
    ) -> ToolResponse[types.WorkspaceWriteResult]:
        return self.execute_tool(workspace_id, "write", {"path": path, "content": content})

    def edit(
        self, workspace_id: str, path: str, old_string: str, new_string: str
    ) -> ToolResponse[types.WorkspaceEditResult]:
        args = {"path": path, "old_string": old_string, "new_string": new_string}
        return self.execute_tool(workspace_id, "edit", args)

    def rm(self, workspace_id: str, path: str) -> ToolResponse[types.WorkspaceRmResult]:
        return self.execute_tool(workspace_id, "rm", {"path": path})

    def mv(self, workspace_id: str, source: str, destination: str) -> ToolResponse[types.WorkspaceMvResult]:
        return self.execute_tool(workspace_id, "mv", {"source": source, "destination": destination})

    def touch(self, workspace_id: str, path: str) -> ToolResponse[types.WorkspaceTouchResult]:
        return self.execute_tool(workspace_id, "touch", {"path": path})

    def mkdir(self, workspace_id: str, path: str) -> ToolResponse[types.WorkspaceMkdirResult]:
        return self.execute_tool(workspace_id, "mkdir", {"path": path})

    def grep(
        self, workspace_id: str, pattern: str, path_pattern: str | None = None
    ) -> ToolResponse[types.WorkspaceGrepResult]:
        args = {"pattern": pattern} | ({} if path_pattern is None else {"path_pattern": path_pattern})
        return self.execute_tool(workspace_id, "grep", args)

    def _send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Any:
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        if self._access_token is not None:
            headers["Authorization"] = f"Bearer {self._access_token}"
        request = urllib.request.Request(self._base_url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as response:
                status, answer = cast(int, response.status), _body(response.read())
        except urllib.error.HTTPError as error:
            message, code, answer = _described(_body(error.read()), str(error))
            raise ToolrestError(message, error.code, code, answer) from None
        if status == 202 and isinstance(answer, dict) and "approval" in answer:
            raise ApprovalRequired(_described(answer, "the call waits for a person")[0], answer)
        return answer


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def _body(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")


def _described(answer: Any, otherwise: str) -> tuple[str, str, Any]:
    """Returns the message and the code of an error. The formats of the toolsets differ."""
    if not isinstance(answer, dict):
        return otherwise, "", answer
    error = answer.get("error")
    if isinstance(error, dict):
        return str(error.get("message", otherwise)), str(error.get("code", "")), answer
    if "message" in answer:
        return str(answer["message"]), str(error or ""), answer
    return str(error or otherwise), str(answer.get("code", "")), answer
