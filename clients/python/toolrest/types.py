"""The types of the interface, written by `make clients` from its OpenAPI description."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Live = TypedDict("Live", {
    "status": "str",
    "service": "str",
    "version": "str",
})

Ready = TypedDict("Ready", {
    "status": "str",
    "database": "str",
})

Done = TypedDict("Done", {
    "message": "str",
})

SessionAnswer = TypedDict("SessionAnswer", {
    "user": "User",
    "access_token": "str",
    "refresh_token": "str | None",
    "access_token_expires_at": "str",
    "refresh_token_expires_at": "str | None",
    "warnings": "NotRequired[list[str]]",
})

User = TypedDict("User", {
    "id": "UserId",
    "email": "str",
    "full_name": "str | None",
    "created_at": "str",
    "updated_at": "str",
})

UserId: TypeAlias = "str"

UserAnswer = TypedDict("UserAnswer", {
    "user": "User",
})

ToolsetList = TypedDict("ToolsetList", {
    "toolsets": "list[ToolsetNames]",
})

ToolsetNames = TypedDict("ToolsetNames", {
    "name": "str",
    "tools": "list[str]",
})

WorkspaceList = TypedDict("WorkspaceList", {
    "count": "int",
    "workspaces": "list[WorkspaceInfo]",
})

WorkspaceInfo1 = TypedDict("WorkspaceInfo1", {
    "id": "WorkspaceId",
    "name": "str",
    "owner_id": "UserId",
    "role": "Role",
    "settings": "WorkspaceSettings | None",
    "created_at": "str",
    "updated_at": "str",
    "kind": "Literal['database']",
})

WorkspaceInfo2 = TypedDict("WorkspaceInfo2", {
    "id": "WorkspaceId",
    "name": "str",
    "owner_id": "UserId",
    "role": "Role",
    "settings": "WorkspaceSettings | None",
    "created_at": "str",
    "updated_at": "str",
    "kind": "Literal['directory']",
    "root": "str",
})

WorkspaceInfo: TypeAlias = "WorkspaceInfo1 | WorkspaceInfo2"

WorkspaceId: TypeAlias = "str"

Role: TypeAlias = "Literal['viewer'] | Literal['editor'] | Literal['owner']"

WorkspaceSettings = TypedDict("WorkspaceSettings", {
    "run": "RunSettings",
})

RunSettings = TypedDict("RunSettings", {
    "timeout_ms": "NotRequired[int | None]",
    "memory_bytes": "NotRequired[int | None]",
    "processes": "NotRequired[int | None]",
    "disk_bytes": "NotRequired[int | None]",
    "output_bytes": "NotRequired[int | None]",
    "network": "NotRequired[list[str]]",
})

WorkspaceAnswer = TypedDict("WorkspaceAnswer", {
    "workspace": "WorkspaceInfo",
})

WorkspaceWithHistory = TypedDict("WorkspaceWithHistory", {
    "workspace": "WorkspaceInfo",
    "history_bytes": "NotRequired[int | None]",
})

MemberList = TypedDict("MemberList", {
    "count": "int",
    "members": "list[Member]",
})

Member = TypedDict("Member", {
    "user_id": "UserId",
    "email": "str",
    "full_name": "str | None",
    "role": "Role",
    "created_at": "str",
})

MemberAnswer = TypedDict("MemberAnswer", {
    "member": "Member",
})

KeyList = TypedDict("KeyList", {
    "count": "int",
    "keys": "list[KeyInfo]",
})

KeyInfo = TypedDict("KeyInfo", {
    "id": "KeyId",
    "user_id": "UserId",
    "name": "str",
    "toolsets": "list[str]",
    "actions": "list[Action]",
    "created_at": "str",
    "expires_at": "str",
    "suspended_at": "str | None",
    "revoked_at": "str | None",
    "last_used_at": "str | None",
})

KeyId: TypeAlias = "str"

Action: TypeAlias = "Literal['read'] | Literal['write'] | Literal['delete'] | Literal['move'] | Literal['exec'] | Literal['fetch'] | Literal['github'] | Literal['memory']"

CreatedKey = TypedDict("CreatedKey", {
    "secret": "str",
    "key": "KeyInfo",
})

KeyAnswer = TypedDict("KeyAnswer", {
    "key": "KeyInfo",
})

SecretList = TypedDict("SecretList", {
    "count": "int",
    "secrets": "list[SecretInfo]",
})

SecretInfo = TypedDict("SecretInfo", {
    "name": "str",
    "created_at": "str",
    "updated_at": "str",
    "updated_by": "UserId",
})

SecretAnswer = TypedDict("SecretAnswer", {
    "secret": "SecretInfo",
})

FolderListing = TypedDict("FolderListing", {
    "path": "WsPath",
    "entries": "list[EntryShown]",
})

WsPath: TypeAlias = "str"

EntryShown = TypedDict("EntryShown", {
    "name": "str",
    "path": "WsPath",
    "file_type": "FileType",
    "is_link": "bool",
    "size": "int",
    "updated_at": "str",
})

FileType: TypeAlias = "Literal['Folder'] | Literal['Document'] | Literal['Canvas'] | Literal['Whiteboard'] | Literal['Chat'] | Literal['Agent'] | Literal['Skill'] | Literal['File']"

StreamedEvent: TypeAlias = "FeedRecord | FileEvent"

FeedRecord: TypeAlias = "CommitEvent | CallEvent | ApprovalFeedEvent"

CommitEvent = TypedDict("CommitEvent", {
    "id": "CommitId",
    "call_id": "CallId",
    "toolset": "str",
    "tool": "str",
    "author": "UserId",
    "created_at": "str",
    "undoes": "CommitId | None",
    "changes": "list[PathChange]",
    "more_changes": "int",
})

CommitId: TypeAlias = "str"

CallId: TypeAlias = "str"

PathChange = TypedDict("PathChange", {
    "op": "EffectKind",
    "path": "WsPath",
    "from": "NotRequired[WsPath | None]",
})

EffectKind: TypeAlias = "Literal['create'] | Literal['update'] | Literal['touch'] | Literal['move'] | Literal['remove'] | Literal['restore']"

CallEvent = TypedDict("CallEvent", {
    "id": "CallId",
    "toolset": "str",
    "tool": "str",
    "user_id": "UserId",
    "key_id": "KeyId | None",
    "started_at": "str",
    "duration_us": "int",
    "outcome": "str",
    "commit_id": "CommitId | None",
})

ApprovalFeedEvent = TypedDict("ApprovalFeedEvent", {
    "id": "ApprovalId",
    "kind": "str",
    "state": "ApprovalState",
    "revision": "int",
    "call_id": "CallId",
    "toolset": "str",
    "tool": "str",
    "user_id": "UserId",
    "key_id": "KeyId | None",
    "at": "str",
})

ApprovalId: TypeAlias = "str"

ApprovalState: TypeAlias = "Literal['pending'] | Literal['approved'] | Literal['executing'] | Literal['done'] | Literal['failed'] | Literal['denied'] | Literal['expired'] | Literal['cancelled']"

FileEvent1 = TypedDict("FileEvent1", {
    "event": "Literal['created']",
    "path": "WsPath",
})

FileEvent2 = TypedDict("FileEvent2", {
    "event": "Literal['changed']",
    "path": "WsPath",
})

FileEvent3 = TypedDict("FileEvent3", {
    "event": "Literal['removed']",
    "path": "WsPath",
})

FileEvent4 = TypedDict("FileEvent4", {
    "event": "Literal['moved']",
    "from": "WsPath",
    "path": "WsPath",
})

FileEvent5 = TypedDict("FileEvent5", {
    "event": "Literal['unknown']",
})

FileEvent: TypeAlias = "FileEvent1 | FileEvent2 | FileEvent3 | FileEvent4 | FileEvent5"

FileWithContent = TypedDict("FileWithContent", {
    "file": "FileInfo",
    "content": "Any",
    "encoding": "NotRequired[str | None]",
})

FileInfo = TypedDict("FileInfo", {
    "id": "FileId",
    "name": "str",
    "display_name": "str",
    "path": "WsPath",
    "file_type": "FileType",
    "is_virtual": "bool",
    "size": "int",
    "hash": "str | None",
    "version_id": "VersionId | None",
    "created_at": "str",
    "updated_at": "str",
    "deleted_at": "str | None",
})

FileId: TypeAlias = "str"

VersionId: TypeAlias = "str"

VersionList = TypedDict("VersionList", {
    "versions": "list[Version]",
    "truncated": "bool",
})

Version = TypedDict("Version", {
    "id": "VersionId",
    "seq": "int",
    "hash": "str",
    "size": "int",
    "author": "UserId",
    "commit_id": "CommitId",
    "created_at": "str",
})

VersionWithContent = TypedDict("VersionWithContent", {
    "version": "Version",
    "content": "Any",
    "encoding": "NotRequired[str | None]",
})

FileAnswer = TypedDict("FileAnswer", {
    "file": "FileInfo",
})

HistoryAnswer = TypedDict("HistoryAnswer", {
    "file": "FileInfo",
    "versions": "list[Version]",
    "truncated": "bool",
})

TrashList = TypedDict("TrashList", {
    "count": "int",
    "files": "list[FileInfo]",
    "truncated": "bool",
})

CommitList = TypedDict("CommitList", {
    "commits": "list[CommitInfo]",
    "truncated": "bool",
})

CommitInfo = TypedDict("CommitInfo", {
    "id": "CommitId",
    "call_id": "CallId",
    "toolset": "str",
    "tool": "str",
    "author": "UserId",
    "created_at": "str",
    "undoes": "CommitId | None",
    "changes": "list[Effect]",
})

Effect = TypedDict("Effect", {
    "op": "EffectKind",
    "path": "WsPath",
    "from": "NotRequired[WsPath | None]",
    "file_id": "FileId",
    "before": "NotRequired[int | None]",
    "after": "NotRequired[int | None]",
    "version_id": "NotRequired[VersionId | None]",
    "mode_before": "NotRequired[int | None]",
    "mode_after": "NotRequired[int | None]",
})

CommitAnswer = TypedDict("CommitAnswer", {
    "commit": "CommitInfo",
})

DiffAnswer = TypedDict("DiffAnswer", {
    "diff": "str",
})

CallList = TypedDict("CallList", {
    "calls": "list[CallRecord]",
    "truncated": "bool",
    "next": "CallId | None",
})

CallRecord = TypedDict("CallRecord", {
    "id": "CallId",
    "correlation_id": "str",
    "user_id": "UserId",
    "key_id": "str | None",
    "toolset": "str",
    "tool": "str",
    "path": "WsPath | None",
    "args": "Any",
    "outcome": "str | None",
    "error": "str | None",
    "started_at": "str",
    "duration_us": "int | None",
    "commit_id": "CommitId | None",
})

MetricsAnswer = TypedDict("MetricsAnswer", {
    "since": "str",
    "until": "str",
    "part_seconds": "int",
    "parts": "list[Part]",
    "tools": "list[ToolMetrics]",
    "truncated": "bool",
    "approvals": "ApprovalMetrics",
    "storage": "Storage",
})

Part = TypedDict("Part", {
    "at": "str",
    "calls": "int",
    "errors": "int",
    "p50_us": "int",
    "p95_us": "int",
})

ToolMetrics = TypedDict("ToolMetrics", {
    "toolset": "str",
    "tool": "str",
    "calls": "int",
    "errors": "int",
    "p50_us": "int",
    "p95_us": "int",
})

ApprovalMetrics = TypedDict("ApprovalMetrics", {
    "waiting": "int",
    "decided": "int",
    "p50_us": "int | None",
    "p95_us": "int | None",
})

Storage = TypedDict("Storage", {
    "bytes": "int",
    "limit_bytes": "int | None",
})

ProcessList = TypedDict("ProcessList", {
    "count": "int",
    "processes": "list[ProcessShown]",
})

ProcessShown = TypedDict("ProcessShown", {
    "id": "str",
    "command": "str",
    "is_running": "bool",
    "user_id": "UserId",
    "key_id": "UserId | None",
    "started_at": "str",
    "output_bytes": "int",
    "exit_code": "int | None",
    "duration_ms": "int | None",
    "limit": "str | None",
    "reason": "str | None",
    "commit_id": "CommitId | None",
})

OutputAnswer = TypedDict("OutputAnswer", {
    "output": "str",
    "next_offset": "int",
    "dropped_bytes": "int",
    "process": "ProcessShown",
})

ChatAnswer = TypedDict("ChatAnswer", {
    "chat": "Chat",
})

Chat = TypedDict("Chat", {
    "id": "ChatId",
    "path": "WsPath",
    "title": "str",
    "created_at": "str",
    "updated_at": "str",
    "messages": "list[Message]",
})

ChatId: TypeAlias = "str"

Message = TypedDict("Message", {
    "id": "str",
    "role": "str",
    "content": "str",
    "created_at": "str",
})

MessageAnswer = TypedDict("MessageAnswer", {
    "message": "Message",
})

RulesAnswer = TypedDict("RulesAnswer", {
    "revision": "int",
    "rules": "list[Rule]",
    "short": "list[str]",
    "approvals": "ApprovalMode | None",
    "released": "NotRequired[list[ApprovalId]]",
})

Rule = TypedDict("Rule", {
    "effect": "RuleEffect",
    "action": "NotRequired[Action | None]",
    "tool": "NotRequired[str | None]",
    "match": "NotRequired[list[str]]",
    "except": "NotRequired[list[str]]",
    "when": "NotRequired[Condition]",
    "because": "NotRequired[str | None]",
    "approvers": "NotRequired[list[str]]",
})

RuleEffect: TypeAlias = "Literal['allow'] | Literal['ask'] | Literal['deny']"

Condition = TypedDict("Condition", {
    "overwrite": "NotRequired[bool | None]",
})

ApprovalMode: TypeAlias = "Literal['spec'] | Literal['off'] | Literal['all'] | Literal['never']"

GrantList = TypedDict("GrantList", {
    "count": "int",
    "grants": "list[Grant]",
})

Grant = TypedDict("Grant", {
    "id": "GrantId",
    "principal": "str",
    "session": "str",
    "action": "Action",
    "pattern": "str",
    "is_denial": "bool",
    "expires_at": "str",
    "approval": "ApprovalId | None",
    "granted_by": "UserId",
    "created_at": "str",
})

GrantId: TypeAlias = "str"

Revoked = TypedDict("Revoked", {
    "revoked": "int",
})

Judgement3 = TypedDict("Judgement3", {
    "decision": "Literal['deny']",
    "reason": "str",
    "rule": "Any",
})

Judgement: TypeAlias = "Judged | Judgement3"

Ask = TypedDict("Ask", {
    "action": "Action",
    "subject": "str",
    "rule": "str | None",
    "because": "str",
    "grant": "str | None",
    "approvers": "list[str]",
})

Judged = TypedDict("Judged", {
    "asks": "list[Ask]",
    "diff": "str",
    "command": "str | None",
})

ApprovalList = TypedDict("ApprovalList", {
    "count": "int",
    "approvals": "list[Approval]",
    "truncated": "bool",
})

Approval = TypedDict("Approval", {
    "id": "ApprovalId",
    "revision": "int",
    "state": "ApprovalState",
    "toolset": "str",
    "tool": "str",
    "args": "Any",
    "reason": "str | None",
    "session": "str",
    "asks": "list[Ask]",
    "asks_count": "int",
    "diff": "str",
    "diff_truncated": "NotRequired[bool]",
    "command": "str | None",
    "command_truncated": "NotRequired[bool]",
    "grants_offered": "list[str]",
    "rules_offered": "list[str]",
    "requested_by": "Requester",
    "step_id": "CallId",
    "correlation_id": "str",
    "decided": "Decided | None",
    "result": "NotRequired[Any]",
    "error": "NotRequired[str | None]",
    "outcome": "str | None",
    "commit_id": "CommitId | None",
    "created_at": "str",
    "expires_at": "str",
    "changed_at": "str",
})

Requester = TypedDict("Requester", {
    "user_id": "UserId",
    "key_id": "KeyId | None",
})

Decided = TypedDict("Decided", {
    "verdict": "Verdict",
    "by": "UserId | None",
    "via": "str",
    "reason": "str | None",
    "args": "str | None",
    "preview": "NotRequired[ApprovalPreview | None]",
    "redacted_args": "str | None",
    "grants": "NotRequired[list[NewGrant]]",
})

Verdict: TypeAlias = "Literal['approve'] | Literal['deny'] | Literal['respond']"

ApprovalPreview = TypedDict("ApprovalPreview", {
    "diff": "str",
    "command": "str | None",
    "shown": "str",
})

NewGrant = TypedDict("NewGrant", {
    "action": "Action",
    "pattern": "str",
    "is_denial": "bool",
    "expires_at": "str",
})

DecisionsAnswer = TypedDict("DecisionsAnswer", {
    "results": "list[OneResult]",
})

OneResult1 = TypedDict("OneResult1", {
    "id": "ApprovalId",
    "state": "ApprovalState",
    "released": "list[ApprovalId]",
})

OneResult2 = TypedDict("OneResult2", {
    "id": "ApprovalId",
    "error": "str",
})

OneResult: TypeAlias = "OneResult1 | OneResult2"

ApprovalWithEvents = TypedDict("ApprovalWithEvents", {
    "approval": "Approval",
    "events": "list[ApprovalEvent]",
})

ApprovalEvent = TypedDict("ApprovalEvent", {
    "seq": "int",
    "at": "str",
    "kind": "str",
    "by": "str | None",
    "via": "str | None",
    "address": "str | None",
    "revision": "int",
    "detail": "Any",
})

ApprovalAnswer = TypedDict("ApprovalAnswer", {
    "approval": "Approval",
})

PreviewAnswer = TypedDict("PreviewAnswer", {
    "diff": "str",
    "command": "str | None",
    "asks": "list[Ask]",
    "grants_offered": "list[str]",
    "rules_offered": "list[str]",
    "preview": "str",
})

DecisionAnswer = TypedDict("DecisionAnswer", {
    "approval": "Approval",
    "released": "list[ApprovalId]",
})

Error = TypedDict("Error", {
    "error": "str",
    "code": "str",
    "fields": "NotRequired[dict[str, str] | None]",
})

WorkspaceLsArgs = TypedDict("WorkspaceLsArgs", {
    "path": "NotRequired[str]",
    "recursive": "NotRequired[bool]",
})

WorkspaceLsResultEntriesItem = TypedDict("WorkspaceLsResultEntriesItem", {
    "name": "str",
    "display_name": "str",
    "path": "str",
    "file_type": "Literal['Folder'] | Literal['Document'] | Literal['Canvas'] | Literal['Whiteboard'] | Literal['Chat'] | Literal['Agent'] | Literal['Skill'] | Literal['File']",
    "is_virtual": "bool",
    "updated_at": "str",
})

WorkspaceLsResultSkipped = TypedDict("WorkspaceLsResultSkipped", {
    "unreadable": "NotRequired[list[str]]",
    "unnamed": "NotRequired[int | None]",
})

WorkspaceLsResult = TypedDict("WorkspaceLsResult", {
    "path": "str",
    "entries": "list[WorkspaceLsResultEntriesItem]",
    "skipped": "NotRequired[WorkspaceLsResultSkipped | None]",
    "warnings": "NotRequired[list[str]]",
})

WorkspaceReadArgs = TypedDict("WorkspaceReadArgs", {
    "path": "str",
})

WorkspaceReadResult = TypedDict("WorkspaceReadResult", {
    "path": "str",
    "content": "str | dict[str, Any]",
    "hash": "str",
    "warnings": "NotRequired[list[str]]",
})

WorkspaceWriteArgs = TypedDict("WorkspaceWriteArgs", {
    "path": "str",
    "content": "str | dict[str, Any]",
    "file_type": "NotRequired[Literal['document', 'folder', 'canvas', 'chat', 'whiteboard', 'agent', 'skill']]",
    "last_read_hash": "NotRequired[str]",
    "dry_run": "NotRequired[bool]",
})

WorkspaceWriteResult = TypedDict("WorkspaceWriteResult", {
    "path": "str",
    "file_id": "str",
    "version_id": "NotRequired[str | None]",
    "hash": "NotRequired[str | None]",
    "warnings": "NotRequired[list[str]]",
})

WorkspaceRmArgs = TypedDict("WorkspaceRmArgs", {
    "path": "str",
    "last_read_hash": "NotRequired[str]",
    "dry_run": "NotRequired[bool]",
})

WorkspaceRmResult = TypedDict("WorkspaceRmResult", {
    "path": "str",
    "file_id": "str",
    "warnings": "NotRequired[list[str]]",
})

WorkspaceMvArgs = TypedDict("WorkspaceMvArgs", {
    "source": "str",
    "destination": "str",
    "last_read_hash": "NotRequired[str]",
    "dry_run": "NotRequired[bool]",
})

WorkspaceMvResult = TypedDict("WorkspaceMvResult", {
    "from_path": "str",
    "to_path": "str",
    "warnings": "NotRequired[list[str]]",
})

WorkspaceTouchArgs = TypedDict("WorkspaceTouchArgs", {
    "path": "str",
    "last_read_hash": "NotRequired[str]",
    "dry_run": "NotRequired[bool]",
})

WorkspaceTouchResult = TypedDict("WorkspaceTouchResult", {
    "path": "str",
    "file_id": "str",
    "warnings": "NotRequired[list[str]]",
})

WorkspaceMkdirArgs = TypedDict("WorkspaceMkdirArgs", {
    "path": "str",
    "last_read_hash": "NotRequired[str]",
    "dry_run": "NotRequired[bool]",
})

WorkspaceMkdirResult = TypedDict("WorkspaceMkdirResult", {
    "path": "str",
    "file_id": "str",
    "warnings": "NotRequired[list[str]]",
})

WorkspaceEditArgs = TypedDict("WorkspaceEditArgs", {
    "path": "str",
    "old_string": "str",
    "new_string": "str",
    "last_read_hash": "NotRequired[str]",
    "fuzzy": "NotRequired[bool]",
    "dry_run": "NotRequired[bool]",
})

WorkspaceEditResult = TypedDict("WorkspaceEditResult", {
    "path": "str",
    "file_id": "str",
    "version_id": "str | None",
    "hash": "str | None",
    "matched_with": "NotRequired[str | None]",
    "diff": "NotRequired[str | None]",
    "warnings": "NotRequired[list[str]]",
})

WorkspaceEditManyArgs = TypedDict("WorkspaceEditManyArgs", {
    "path": "str",
    "old_string": "str",
    "new_string": "str",
    "last_read_hash": "NotRequired[str]",
    "fuzzy": "NotRequired[bool]",
    "dry_run": "NotRequired[bool]",
})

WorkspaceEditManyResult = TypedDict("WorkspaceEditManyResult", {
    "path": "str",
    "file_id": "str",
    "version_id": "str | None",
    "hash": "str | None",
    "matched_with": "NotRequired[str | None]",
    "diff": "NotRequired[str | None]",
    "warnings": "NotRequired[list[str]]",
})

WorkspaceGrepArgs = TypedDict("WorkspaceGrepArgs", {
    "pattern": "str",
    "path_pattern": "NotRequired[str]",
    "case_sensitive": "NotRequired[bool]",
    "include_ignored": "NotRequired[bool]",
})

WorkspaceGrepResultMatchesItem = TypedDict("WorkspaceGrepResultMatchesItem", {
    "path": "str",
    "line_number": "int",
    "line_text": "str",
})

WorkspaceGrepResultSkipped = TypedDict("WorkspaceGrepResultSkipped", {
    "binary": "NotRequired[int | None]",
    "ignored": "NotRequired[int | None]",
    "too_large": "NotRequired[int | None]",
    "unreadable": "NotRequired[int | None]",
    "unnamed": "NotRequired[int | None]",
})

WorkspaceGrepResult = TypedDict("WorkspaceGrepResult", {
    "matches": "list[WorkspaceGrepResultMatchesItem]",
    "truncated": "NotRequired[bool]",
    "skipped": "NotRequired[WorkspaceGrepResultSkipped | None]",
    "warnings": "NotRequired[list[str]]",
})

AgentReadArgs = TypedDict("AgentReadArgs", {
    "paths": "list[str]",
})

AgentReadResultDataFilesItemEntriesItem = TypedDict("AgentReadResultDataFilesItemEntriesItem", {
    "path": "str",
    "type": "str",
    "size": "int",
})

AgentReadResultDataFilesItem = TypedDict("AgentReadResultDataFilesItem", {
    "path": "str",
    "hash": "NotRequired[str | None]",
    "from": "NotRequired[int | None]",
    "to": "NotRequired[int | None]",
    "total": "NotRequired[int | None]",
    "text": "NotRequired[str | None]",
    "image": "NotRequired[int | None]",
    "entries": "NotRequired[list[AgentReadResultDataFilesItemEntriesItem] | None]",
    "error": "NotRequired[str | None]",
})

AgentReadResultData = TypedDict("AgentReadResultData", {
    "files": "list[AgentReadResultDataFilesItem]",
})

AgentReadResultBlocksItem = TypedDict("AgentReadResultBlocksItem", {
    "type": "str",
    "data": "str",
    "mimeType": "str",
})

AgentReadResult = TypedDict("AgentReadResult", {
    "text": "str",
    "data": "AgentReadResultData",
    "blocks": "NotRequired[list[AgentReadResultBlocksItem]]",
    "warnings": "NotRequired[list[str]]",
})

AgentLsArgs = TypedDict("AgentLsArgs", {
    "path": "NotRequired[str]",
    "glob": "NotRequired[str]",
})

AgentLsResultDataEntriesItem = TypedDict("AgentLsResultDataEntriesItem", {
    "path": "str",
    "type": "str",
    "size": "int",
})

AgentLsResultData = TypedDict("AgentLsResultData", {
    "entries": "list[AgentLsResultDataEntriesItem]",
    "total": "int",
})

AgentLsResultBlocksItem = TypedDict("AgentLsResultBlocksItem", {
    "type": "str",
    "data": "str",
    "mimeType": "str",
})

AgentLsResult = TypedDict("AgentLsResult", {
    "text": "str",
    "data": "AgentLsResultData",
    "blocks": "NotRequired[list[AgentLsResultBlocksItem]]",
    "warnings": "NotRequired[list[str]]",
})

AgentGrepArgs = TypedDict("AgentGrepArgs", {
    "pattern": "str",
    "path": "NotRequired[str]",
    "glob": "NotRequired[str]",
    "context": "NotRequired[int]",
})

AgentGrepResultDataMatchesItem = TypedDict("AgentGrepResultDataMatchesItem", {
    "path": "str",
    "line": "int",
    "text": "str",
})

AgentGrepResultData = TypedDict("AgentGrepResultData", {
    "matches": "list[AgentGrepResultDataMatchesItem]",
    "total": "int",
    "files": "int",
    "out": "NotRequired[str | None]",
})

AgentGrepResultBlocksItem = TypedDict("AgentGrepResultBlocksItem", {
    "type": "str",
    "data": "str",
    "mimeType": "str",
})

AgentGrepResult = TypedDict("AgentGrepResult", {
    "text": "str",
    "data": "AgentGrepResultData",
    "blocks": "NotRequired[list[AgentGrepResultBlocksItem]]",
    "warnings": "NotRequired[list[str]]",
})

AgentEditArgsEditsItem = TypedDict("AgentEditArgsEditsItem", {
    "path": "str",
    "old": "str",
    "new": "str",
    "all": "NotRequired[bool]",
    "if_hash": "NotRequired[str]",
})

AgentEditArgs = TypedDict("AgentEditArgs", {
    "edits": "list[AgentEditArgsEditsItem]",
})

AgentEditResultDataFilesItem = TypedDict("AgentEditResultDataFilesItem", {
    "path": "str",
    "action": "NotRequired[str | None]",
    "from": "NotRequired[str | None]",
    "hash": "NotRequired[str | None]",
    "diff": "NotRequired[str | None]",
    "matched_with": "NotRequired[list[str]]",
})

AgentEditResultData = TypedDict("AgentEditResultData", {
    "commit": "NotRequired[str | None]",
    "files": "list[AgentEditResultDataFilesItem]",
})

AgentEditResultBlocksItem = TypedDict("AgentEditResultBlocksItem", {
    "type": "str",
    "data": "str",
    "mimeType": "str",
})

AgentEditResult = TypedDict("AgentEditResult", {
    "text": "str",
    "data": "AgentEditResultData",
    "blocks": "NotRequired[list[AgentEditResultBlocksItem]]",
    "warnings": "NotRequired[list[str]]",
})

AgentWriteArgs = TypedDict("AgentWriteArgs", {
    "path": "str",
    "content": "str",
    "if_hash": "NotRequired[str]",
})

AgentWriteResultDataFilesItem = TypedDict("AgentWriteResultDataFilesItem", {
    "path": "str",
    "action": "NotRequired[str | None]",
    "from": "NotRequired[str | None]",
    "hash": "NotRequired[str | None]",
    "diff": "NotRequired[str | None]",
    "matched_with": "NotRequired[list[str]]",
})

AgentWriteResultData = TypedDict("AgentWriteResultData", {
    "commit": "NotRequired[str | None]",
    "files": "list[AgentWriteResultDataFilesItem]",
})

AgentWriteResultBlocksItem = TypedDict("AgentWriteResultBlocksItem", {
    "type": "str",
    "data": "str",
    "mimeType": "str",
})

AgentWriteResult = TypedDict("AgentWriteResult", {
    "text": "str",
    "data": "AgentWriteResultData",
    "blocks": "NotRequired[list[AgentWriteResultBlocksItem]]",
    "warnings": "NotRequired[list[str]]",
})

AgentApplyPatchArgs = TypedDict("AgentApplyPatchArgs", {
    "patch": "str",
})

AgentApplyPatchResultDataFilesItem = TypedDict("AgentApplyPatchResultDataFilesItem", {
    "path": "str",
    "action": "NotRequired[str | None]",
    "from": "NotRequired[str | None]",
    "hash": "NotRequired[str | None]",
    "diff": "NotRequired[str | None]",
    "matched_with": "NotRequired[list[str]]",
})

AgentApplyPatchResultData = TypedDict("AgentApplyPatchResultData", {
    "commit": "NotRequired[str | None]",
    "files": "list[AgentApplyPatchResultDataFilesItem]",
})

AgentApplyPatchResultBlocksItem = TypedDict("AgentApplyPatchResultBlocksItem", {
    "type": "str",
    "data": "str",
    "mimeType": "str",
})

AgentApplyPatchResult = TypedDict("AgentApplyPatchResult", {
    "text": "str",
    "data": "AgentApplyPatchResultData",
    "blocks": "NotRequired[list[AgentApplyPatchResultBlocksItem]]",
    "warnings": "NotRequired[list[str]]",
})

AgentRunArgs = TypedDict("AgentRunArgs", {
    "command": "str",
    "cwd": "NotRequired[str]",
    "wait": "NotRequired[float]",
    "background": "NotRequired[bool]",
})

AgentRunResultDataChangesItem = TypedDict("AgentRunResultDataChangesItem", {
    "path": "str",
    "change": "Literal['created'] | Literal['changed'] | Literal['moved'] | Literal['removed']",
    "from": "NotRequired[str | None]",
})

AgentRunResultDataLeftOutItem = TypedDict("AgentRunResultDataLeftOutItem", {
    "path": "str",
    "reason": "Literal['ignored'] | Literal['too_large'] | Literal['too_much'] | Literal['link'] | Literal['git_config'] | Literal['new_repository'] | Literal['special'] | Literal['name'] | Literal['unreadable']",
})

AgentRunResultDataConflictsItem = TypedDict("AgentRunResultDataConflictsItem", {
    "path": "str",
    "keptAs": "NotRequired[str | None]",
    "reason": "str",
})

AgentRunResultData = TypedDict("AgentRunResultData", {
    "state": "str",
    "exit": "NotRequired[int | None]",
    "pipe": "NotRequired[list[int]]",
    "seconds": "float",
    "output": "str",
    "out": "NotRequired[str | None]",
    "commit": "NotRequired[str | None]",
    "changes": "NotRequired[list[AgentRunResultDataChangesItem]]",
    "left_out": "NotRequired[list[AgentRunResultDataLeftOutItem]]",
    "conflicts": "NotRequired[list[AgentRunResultDataConflictsItem]]",
    "job": "NotRequired[str | None]",
})

AgentRunResultBlocksItem = TypedDict("AgentRunResultBlocksItem", {
    "type": "str",
    "data": "str",
    "mimeType": "str",
})

AgentRunResult = TypedDict("AgentRunResult", {
    "text": "str",
    "data": "AgentRunResultData",
    "blocks": "NotRequired[list[AgentRunResultBlocksItem]]",
    "warnings": "NotRequired[list[str]]",
})

AgentJobArgs = TypedDict("AgentJobArgs", {
    "id": "NotRequired[str]",
    "wait": "NotRequired[float]",
    "until": "NotRequired[str]",
    "input": "NotRequired[str]",
    "stop": "NotRequired[bool]",
})

AgentJobResultData1ChangesItem = TypedDict("AgentJobResultData1ChangesItem", {
    "path": "str",
    "change": "Literal['created'] | Literal['changed'] | Literal['moved'] | Literal['removed']",
    "from": "NotRequired[str | None]",
})

AgentJobResultData1LeftOutItem = TypedDict("AgentJobResultData1LeftOutItem", {
    "path": "str",
    "reason": "Literal['ignored'] | Literal['too_large'] | Literal['too_much'] | Literal['link'] | Literal['git_config'] | Literal['new_repository'] | Literal['special'] | Literal['name'] | Literal['unreadable']",
})

AgentJobResultData1ConflictsItem = TypedDict("AgentJobResultData1ConflictsItem", {
    "path": "str",
    "keptAs": "NotRequired[str | None]",
    "reason": "str",
})

AgentJobResultData1 = TypedDict("AgentJobResultData1", {
    "state": "str",
    "exit": "NotRequired[int | None]",
    "pipe": "NotRequired[list[int]]",
    "seconds": "float",
    "output": "str",
    "out": "NotRequired[str | None]",
    "commit": "NotRequired[str | None]",
    "changes": "NotRequired[list[AgentJobResultData1ChangesItem]]",
    "left_out": "NotRequired[list[AgentJobResultData1LeftOutItem]]",
    "conflicts": "NotRequired[list[AgentJobResultData1ConflictsItem]]",
    "job": "NotRequired[str | None]",
})

AgentJobResultData2 = TypedDict("AgentJobResultData2", {
    "state": "str",
    "job": "str",
})

AgentJobResultData3 = TypedDict("AgentJobResultData3", {
    "state": "str",
    "job": "str",
    "answer": "Any",
})

AgentJobResultData4JobsItem = TypedDict("AgentJobResultData4JobsItem", {
    "id": "str",
    "state": "str",
    "command": "str",
    "seconds": "NotRequired[float | None]",
    "exit": "NotRequired[int | None]",
})

AgentJobResultData4 = TypedDict("AgentJobResultData4", {
    "jobs": "list[AgentJobResultData4JobsItem]",
})

AgentJobResultBlocksItem = TypedDict("AgentJobResultBlocksItem", {
    "type": "str",
    "data": "str",
    "mimeType": "str",
})

AgentJobResult = TypedDict("AgentJobResult", {
    "text": "str",
    "data": "AgentJobResultData1 | AgentJobResultData2 | AgentJobResultData3 | AgentJobResultData4",
    "blocks": "NotRequired[list[AgentJobResultBlocksItem]]",
    "warnings": "NotRequired[list[str]]",
})

AgentChangesArgs = TypedDict("AgentChangesArgs", {
    "commit": "NotRequired[str]",
    "since": "NotRequired[str]",
    "path": "NotRequired[str]",
})

AgentChangesResultDataCommitsItemChangesItem = TypedDict("AgentChangesResultDataCommitsItemChangesItem", {
    "op": "Literal['create'] | Literal['update'] | Literal['touch'] | Literal['move'] | Literal['remove'] | Literal['restore']",
    "path": "str",
    "from": "NotRequired[str | None]",
    "file_id": "str",
    "before": "NotRequired[int | None]",
    "after": "NotRequired[int | None]",
    "version_id": "NotRequired[str | None]",
    "mode_before": "NotRequired[int | None]",
    "mode_after": "NotRequired[int | None]",
})

AgentChangesResultDataCommitsItem = TypedDict("AgentChangesResultDataCommitsItem", {
    "id": "str",
    "at": "str",
    "tool": "str",
    "by": "str",
    "changes": "list[AgentChangesResultDataCommitsItemChangesItem]",
})

AgentChangesResultData = TypedDict("AgentChangesResultData", {
    "commits": "NotRequired[list[AgentChangesResultDataCommitsItem] | None]",
    "diff": "NotRequired[str | None]",
})

AgentChangesResultBlocksItem = TypedDict("AgentChangesResultBlocksItem", {
    "type": "str",
    "data": "str",
    "mimeType": "str",
})

AgentChangesResult = TypedDict("AgentChangesResult", {
    "text": "str",
    "data": "AgentChangesResultData",
    "blocks": "NotRequired[list[AgentChangesResultBlocksItem]]",
    "warnings": "NotRequired[list[str]]",
})

AgentUndoArgs = TypedDict("AgentUndoArgs", {
    "commit": "NotRequired[str]",
    "since": "NotRequired[str]",
    "paths": "NotRequired[list[str]]",
})

AgentUndoResultDataFilesItem = TypedDict("AgentUndoResultDataFilesItem", {
    "path": "str",
    "action": "NotRequired[str | None]",
    "from": "NotRequired[str | None]",
    "hash": "NotRequired[str | None]",
    "diff": "NotRequired[str | None]",
    "matched_with": "NotRequired[list[str]]",
})

AgentUndoResultData = TypedDict("AgentUndoResultData", {
    "commit": "NotRequired[str | None]",
    "files": "list[AgentUndoResultDataFilesItem]",
})

AgentUndoResultBlocksItem = TypedDict("AgentUndoResultBlocksItem", {
    "type": "str",
    "data": "str",
    "mimeType": "str",
})

AgentUndoResult = TypedDict("AgentUndoResult", {
    "text": "str",
    "data": "AgentUndoResultData",
    "blocks": "NotRequired[list[AgentUndoResultBlocksItem]]",
    "warnings": "NotRequired[list[str]]",
})

BackendReadFileArgs = TypedDict("BackendReadFileArgs", {
    "path": "str",
})

BackendReadFileResult = TypedDict("BackendReadFileResult", {
    "content": "str",
    "hash": "NotRequired[str | None]",
    "warnings": "NotRequired[list[str]]",
})

BackendWriteFileArgs = TypedDict("BackendWriteFileArgs", {
    "path": "str",
    "content": "str",
    "expectedHash": "NotRequired[str]",
    "dryRun": "NotRequired[bool]",
})

BackendWriteFileResult = TypedDict("BackendWriteFileResult", {
    "message": "str",
    "hash": "str",
    "diff": "str",
    "warnings": "NotRequired[list[str]]",
})

BackendListFilesArgs = TypedDict("BackendListFilesArgs", {
    "path": "str",
})

BackendListFilesResultSkipped = TypedDict("BackendListFilesResultSkipped", {
    "unreadable": "NotRequired[list[str]]",
    "unnamed": "NotRequired[int | None]",
})

BackendListFilesResult = TypedDict("BackendListFilesResult", {
    "files": "list[str]",
    "directories": "NotRequired[list[str]]",
    "skipped": "NotRequired[BackendListFilesResultSkipped | None]",
    "warnings": "NotRequired[list[str]]",
})

BackendExecuteShellCommandArgs = TypedDict("BackendExecuteShellCommandArgs", {
    "command": "str",
    "secrets": "NotRequired[list[str]]",
    "timeout": "NotRequired[float]",
})

BackendExecuteShellCommandResultChangesItem = TypedDict("BackendExecuteShellCommandResultChangesItem", {
    "path": "str",
    "change": "Literal['created'] | Literal['changed'] | Literal['moved'] | Literal['removed']",
    "from": "NotRequired[str | None]",
})

BackendExecuteShellCommandResultConflictsItem = TypedDict("BackendExecuteShellCommandResultConflictsItem", {
    "path": "str",
    "keptAs": "NotRequired[str | None]",
    "reason": "str",
})

BackendExecuteShellCommandResultLeftOutItem = TypedDict("BackendExecuteShellCommandResultLeftOutItem", {
    "path": "str",
    "reason": "Literal['ignored'] | Literal['too_large'] | Literal['too_much'] | Literal['link'] | Literal['git_config'] | Literal['new_repository'] | Literal['special'] | Literal['name'] | Literal['unreadable']",
})

BackendExecuteShellCommandResult = TypedDict("BackendExecuteShellCommandResult", {
    "stdout": "str",
    "stderr": "str",
    "exitCode": "int",
    "limit": "NotRequired[str | None]",
    "enforcedBy": "Any",
    "commitId": "NotRequired[str | None]",
    "changesBy": "NotRequired[Literal['program'] | Literal['folder'] | None]",
    "changes": "NotRequired[list[BackendExecuteShellCommandResultChangesItem]]",
    "changesTotal": "NotRequired[int | None]",
    "conflicts": "NotRequired[list[BackendExecuteShellCommandResultConflictsItem]]",
    "leftOut": "NotRequired[list[BackendExecuteShellCommandResultLeftOutItem]]",
    "leftOutTotal": "NotRequired[int | None]",
    "warnings": "NotRequired[list[str]]",
})

BackendBrowseWebArgs = TypedDict("BackendBrowseWebArgs", {
    "url": "str",
    "task_description": "str",
})

BackendBrowseWebResult = TypedDict("BackendBrowseWebResult", {
    "summary": "str",
    "summaryBy": "str",
    "fetchedBy": "str",
    "untrusted": "bool",
    "url": "str",
    "title": "NotRequired[str | None]",
    "status": "NotRequired[int | None]",
    "warnings": "NotRequired[list[str]]",
})

BackendGithubCreateRepoArgs = TypedDict("BackendGithubCreateRepoArgs", {
    "name": "str",
    "description": "NotRequired[str]",
    "is_private": "NotRequired[bool]",
})

BackendGithubCreateRepoResult = TypedDict("BackendGithubCreateRepoResult", {
    "repo_url": "str",
    "full_name": "str",
    "warnings": "NotRequired[list[str]]",
})

BackendGithubGetPrDetailsArgs = TypedDict("BackendGithubGetPrDetailsArgs", {
    "pr_url": "str",
})

BackendGithubGetPrDetailsResult = TypedDict("BackendGithubGetPrDetailsResult", {
    "title": "str",
    "body": "str",
    "files": "list[str]",
    "total": "NotRequired[int | None]",
    "state": "str",
    "head_sha": "str",
    "warnings": "NotRequired[list[str]]",
})

BackendGithubPostPrCommentArgs = TypedDict("BackendGithubPostPrCommentArgs", {
    "pr_url": "str",
    "comment": "str",
})

BackendGithubPostPrCommentResult = TypedDict("BackendGithubPostPrCommentResult", {
    "message": "str",
    "comment_url": "str",
    "warnings": "NotRequired[list[str]]",
})

BackendGithubMergePrArgs = TypedDict("BackendGithubMergePrArgs", {
    "pr_url": "str",
    "method": "NotRequired[Literal['merge', 'squash', 'rebase']]",
    "head_sha": "NotRequired[str]",
})

BackendGithubMergePrResult = TypedDict("BackendGithubMergePrResult", {
    "message": "str",
    "sha": "NotRequired[str | None]",
    "warnings": "NotRequired[list[str]]",
})

BackendGithubCreateFileInRepoArgs = TypedDict("BackendGithubCreateFileInRepoArgs", {
    "repo_name": "str",
    "path": "str",
    "content": "str",
    "commit_message": "str",
    "branch": "NotRequired[str]",
    "expected_sha": "NotRequired[str]",
})

BackendGithubCreateFileInRepoResult = TypedDict("BackendGithubCreateFileInRepoResult", {
    "commit_sha": "str",
    "created": "bool",
    "warnings": "NotRequired[list[str]]",
})

BackendDataAnalyzeArgs = TypedDict("BackendDataAnalyzeArgs", {
    "input_file_path": "str",
    "analysis_script": "str",
    "secrets": "NotRequired[list[str]]",
    "timeout": "NotRequired[float]",
})

BackendDataAnalyzeResultChangesItem = TypedDict("BackendDataAnalyzeResultChangesItem", {
    "path": "str",
    "change": "Literal['created'] | Literal['changed'] | Literal['moved'] | Literal['removed']",
    "from": "NotRequired[str | None]",
})

BackendDataAnalyzeResultConflictsItem = TypedDict("BackendDataAnalyzeResultConflictsItem", {
    "path": "str",
    "keptAs": "NotRequired[str | None]",
    "reason": "str",
})

BackendDataAnalyzeResultLeftOutItem = TypedDict("BackendDataAnalyzeResultLeftOutItem", {
    "path": "str",
    "reason": "Literal['ignored'] | Literal['too_large'] | Literal['too_much'] | Literal['link'] | Literal['git_config'] | Literal['new_repository'] | Literal['special'] | Literal['name'] | Literal['unreadable']",
})

BackendDataAnalyzeResult = TypedDict("BackendDataAnalyzeResult", {
    "stdout": "str",
    "stderr": "NotRequired[str]",
    "limit": "NotRequired[str | None]",
    "enforcedBy": "Any",
    "commitId": "NotRequired[str | None]",
    "changesBy": "NotRequired[Literal['program'] | Literal['folder'] | None]",
    "changes": "NotRequired[list[BackendDataAnalyzeResultChangesItem]]",
    "changesTotal": "NotRequired[int | None]",
    "conflicts": "NotRequired[list[BackendDataAnalyzeResultConflictsItem]]",
    "leftOut": "NotRequired[list[BackendDataAnalyzeResultLeftOutItem]]",
    "leftOutTotal": "NotRequired[int | None]",
    "warnings": "NotRequired[list[str]]",
})

BackendDataVisualizeArgs = TypedDict("BackendDataVisualizeArgs", {
    "input_file_path": "str",
    "visualization_script": "str",
    "output_image_path": "str",
    "secrets": "NotRequired[list[str]]",
    "timeout": "NotRequired[float]",
})

BackendDataVisualizeResultChangesItem = TypedDict("BackendDataVisualizeResultChangesItem", {
    "path": "str",
    "change": "Literal['created'] | Literal['changed'] | Literal['moved'] | Literal['removed']",
    "from": "NotRequired[str | None]",
})

BackendDataVisualizeResultConflictsItem = TypedDict("BackendDataVisualizeResultConflictsItem", {
    "path": "str",
    "keptAs": "NotRequired[str | None]",
    "reason": "str",
})

BackendDataVisualizeResultLeftOutItem = TypedDict("BackendDataVisualizeResultLeftOutItem", {
    "path": "str",
    "reason": "Literal['ignored'] | Literal['too_large'] | Literal['too_much'] | Literal['link'] | Literal['git_config'] | Literal['new_repository'] | Literal['special'] | Literal['name'] | Literal['unreadable']",
})

BackendDataVisualizeResult = TypedDict("BackendDataVisualizeResult", {
    "message": "str",
    "output_image_path": "str",
    "stdout": "NotRequired[str]",
    "stderr": "NotRequired[str]",
    "limit": "NotRequired[str | None]",
    "enforcedBy": "Any",
    "commitId": "NotRequired[str | None]",
    "changesBy": "NotRequired[Literal['program'] | Literal['folder'] | None]",
    "changes": "NotRequired[list[BackendDataVisualizeResultChangesItem]]",
    "changesTotal": "NotRequired[int | None]",
    "conflicts": "NotRequired[list[BackendDataVisualizeResultConflictsItem]]",
    "leftOut": "NotRequired[list[BackendDataVisualizeResultLeftOutItem]]",
    "leftOutTotal": "NotRequired[int | None]",
    "warnings": "NotRequired[list[str]]",
})

BackendMemorySaveArgs = TypedDict("BackendMemorySaveArgs", {
    "key": "str",
    "value": "str",
    "tags": "NotRequired[list[str]]",
    "expires_in_seconds": "NotRequired[int]",
})

BackendMemorySaveResult = TypedDict("BackendMemorySaveResult", {
    "message": "str",
    "warnings": "NotRequired[list[str]]",
})

BackendMemoryRetrieveArgs = TypedDict("BackendMemoryRetrieveArgs", {
    "key": "NotRequired[str]",
    "tags": "NotRequired[list[str]]",
})

BackendMemoryRetrieveResultItemsItem = TypedDict("BackendMemoryRetrieveResultItemsItem", {
    "key": "str",
    "value": "str",
    "tags": "list[str]",
})

BackendMemoryRetrieveResult = TypedDict("BackendMemoryRetrieveResult", {
    "items": "list[BackendMemoryRetrieveResultItemsItem]",
    "truncated": "NotRequired[bool]",
    "skipped": "NotRequired[int | None]",
    "warnings": "NotRequired[list[str]]",
})

BackendMemoryDeleteArgs = TypedDict("BackendMemoryDeleteArgs", {
    "key": "str",
})

BackendMemoryDeleteResult = TypedDict("BackendMemoryDeleteResult", {
    "message": "str",
    "warnings": "NotRequired[list[str]]",
})

BackendMemorySearchArgs = TypedDict("BackendMemorySearchArgs", {
    "query": "str",
    "tags": "NotRequired[list[str]]",
    "limit": "NotRequired[int]",
})

BackendMemorySearchResultItemsItem = TypedDict("BackendMemorySearchResultItemsItem", {
    "key": "str",
    "value": "str",
    "tags": "list[str]",
    "createdAt": "str",
    "updatedAt": "str",
    "expiresAt": "NotRequired[str | None]",
    "userId": "str",
    "keyId": "NotRequired[str | None]",
})

BackendMemorySearchResult = TypedDict("BackendMemorySearchResult", {
    "items": "list[BackendMemorySearchResultItemsItem]",
    "matched": "Literal['all', 'any']",
    "truncated": "NotRequired[bool]",
    "skipped": "NotRequired[int | None]",
    "warnings": "NotRequired[list[str]]",
})

BackendMemoryListArgs = TypedDict("BackendMemoryListArgs", {
    "tags": "NotRequired[list[str]]",
    "after": "NotRequired[str]",
    "limit": "NotRequired[int]",
})

BackendMemoryListResultItemsItem = TypedDict("BackendMemoryListResultItemsItem", {
    "key": "str",
    "tags": "list[str]",
    "bytes": "int",
    "createdAt": "str",
    "updatedAt": "str",
    "expiresAt": "NotRequired[str | None]",
    "userId": "str",
    "keyId": "NotRequired[str | None]",
})

BackendMemoryListResult = TypedDict("BackendMemoryListResult", {
    "items": "list[BackendMemoryListResultItemsItem]",
    "next": "NotRequired[str | None]",
    "skipped": "NotRequired[int | None]",
    "warnings": "NotRequired[list[str]]",
})

CodingReadArgs = TypedDict("CodingReadArgs", {
    "filePath": "str",
    "offset": "NotRequired[int]",
    "limit": "NotRequired[int]",
})

CodingReadResultMetadata = TypedDict("CodingReadResultMetadata", {
    "truncated": "bool",
    "lineCount": "int",
    "filePath": "str",
})

CodingReadResult = TypedDict("CodingReadResult", {
    "content": "str",
    "metadata": "CodingReadResultMetadata",
    "hash": "str | None",
    "warnings": "NotRequired[list[str]]",
})

CodingWriteArgs = TypedDict("CodingWriteArgs", {
    "content": "str",
    "filePath": "str",
    "expectedHash": "NotRequired[str]",
    "dryRun": "NotRequired[bool]",
})

CodingWriteResult = TypedDict("CodingWriteResult", {
    "success": "bool",
    "filePath": "str",
    "diff": "str",
    "created": "bool",
    "hash": "str",
    "warnings": "NotRequired[list[str]]",
})

CodingEditArgs = TypedDict("CodingEditArgs", {
    "filePath": "str",
    "oldString": "str",
    "newString": "str",
    "replaceAll": "NotRequired[bool]",
    "expectedHash": "NotRequired[str]",
    "fuzzy": "NotRequired[bool]",
    "dryRun": "NotRequired[bool]",
})

CodingEditResult = TypedDict("CodingEditResult", {
    "success": "bool",
    "filePath": "str",
    "replacements": "int",
    "hash": "str | None",
    "diff": "str",
    "matchedWith": "NotRequired[str | None]",
    "warnings": "NotRequired[list[str]]",
})

CodingMultieditArgsEditsItem = TypedDict("CodingMultieditArgsEditsItem", {
    "oldString": "str",
    "newString": "str",
    "replaceAll": "NotRequired[bool]",
})

CodingMultieditArgs = TypedDict("CodingMultieditArgs", {
    "filePath": "str",
    "edits": "list[CodingMultieditArgsEditsItem]",
    "expectedHash": "NotRequired[str]",
    "fuzzy": "NotRequired[bool]",
    "dryRun": "NotRequired[bool]",
})

CodingMultieditResultResultsItem = TypedDict("CodingMultieditResultResultsItem", {
    "replacements": "int",
})

CodingMultieditResult = TypedDict("CodingMultieditResult", {
    "success": "bool",
    "filePath": "str",
    "totalReplacements": "int",
    "results": "list[CodingMultieditResultResultsItem]",
    "hash": "str | None",
    "diff": "str",
    "matchedWith": "NotRequired[str | None]",
    "warnings": "NotRequired[list[str]]",
})

CodingApplyPatchArgs = TypedDict("CodingApplyPatchArgs", {
    "patchText": "str",
    "expectedHashes": "NotRequired[dict[str, str]]",
    "dryRun": "NotRequired[bool]",
})

CodingApplyPatchResultFilesItem = TypedDict("CodingApplyPatchResultFilesItem", {
    "path": "str",
    "action": "Literal['add', 'update', 'delete', 'move']",
})

CodingApplyPatchResult = TypedDict("CodingApplyPatchResult", {
    "success": "bool",
    "filesModified": "int",
    "files": "list[CodingApplyPatchResultFilesItem]",
    "diff": "str",
    "warnings": "NotRequired[list[str]]",
})

CodingLsArgs = TypedDict("CodingLsArgs", {
    "dirPath": "str",
    "recursive": "NotRequired[bool]",
})

CodingLsResultEntriesItem = TypedDict("CodingLsResultEntriesItem", {
    "name": "str",
    "path": "str",
    "type": "Literal['file', 'directory']",
})

CodingLsResultSkipped = TypedDict("CodingLsResultSkipped", {
    "unreadable": "NotRequired[list[str]]",
    "unnamed": "NotRequired[int | None]",
})

CodingLsResult = TypedDict("CodingLsResult", {
    "entries": "list[CodingLsResultEntriesItem]",
    "count": "int",
    "missing": "NotRequired[bool]",
    "skipped": "NotRequired[CodingLsResultSkipped | None]",
    "warnings": "NotRequired[list[str]]",
})

CodingGlobArgs = TypedDict("CodingGlobArgs", {
    "pattern": "str",
    "limit": "NotRequired[int]",
    "includeIgnored": "NotRequired[bool]",
})

CodingGlobResult = TypedDict("CodingGlobResult", {
    "files": "list[str]",
    "count": "int",
    "pattern": "str",
    "total": "NotRequired[int | None]",
    "skipped": "NotRequired[int | None]",
    "unreadable": "NotRequired[int | None]",
    "unnamed": "NotRequired[int | None]",
    "warnings": "NotRequired[list[str]]",
})

FileFileReadArgs = TypedDict("FileFileReadArgs", {
    "path": "str",
    "offset": "NotRequired[int]",
    "limit": "NotRequired[int]",
})

FileFileReadResult = TypedDict("FileFileReadResult", {
    "content": "str",
    "total_lines": "int",
    "truncated": "bool",
    "hash": "str | None",
    "warnings": "NotRequired[list[str]]",
})

FileFileWriteArgs = TypedDict("FileFileWriteArgs", {
    "path": "str",
    "content": "str",
    "expected_hash": "NotRequired[str]",
    "dry_run": "NotRequired[bool]",
})

FileFileWriteResult = TypedDict("FileFileWriteResult", {
    "success": "bool",
    "bytes_written": "int",
    "hash": "str",
    "diff": "str",
    "warnings": "NotRequired[list[str]]",
})

FileFilePatchArgsPatchesItem = TypedDict("FileFilePatchArgsPatchesItem", {
    "find": "str",
    "replace": "str",
})

FileFilePatchArgs = TypedDict("FileFilePatchArgs", {
    "path": "str",
    "patches": "list[FileFilePatchArgsPatchesItem]",
    "expected_hash": "NotRequired[str]",
    "fuzzy": "NotRequired[bool]",
    "dry_run": "NotRequired[bool]",
})

FileFilePatchResult = TypedDict("FileFilePatchResult", {
    "success": "bool",
    "patches_applied": "int",
    "hash": "str | None",
    "diff": "str",
    "matched_with": "NotRequired[str | None]",
    "warnings": "NotRequired[list[str]]",
})

FileFileDeleteArgs = TypedDict("FileFileDeleteArgs", {
    "path": "str",
    "expected_hash": "NotRequired[str]",
    "dry_run": "NotRequired[bool]",
})

FileFileDeleteResult = TypedDict("FileFileDeleteResult", {
    "success": "bool",
    "warnings": "NotRequired[list[str]]",
})

FileFileListArgs = TypedDict("FileFileListArgs", {
    "path": "NotRequired[str]",
    "pattern": "NotRequired[str]",
    "include_ignored": "NotRequired[bool]",
})

FileFileListResultFilesItem = TypedDict("FileFileListResultFilesItem", {
    "path": "str",
    "size": "int",
    "modified": "str",
})

FileFileListResult = TypedDict("FileFileListResult", {
    "files": "list[FileFileListResultFilesItem]",
    "skipped": "NotRequired[int | None]",
    "unreadable": "NotRequired[int | None]",
    "unnamed": "NotRequired[int | None]",
    "warnings": "NotRequired[list[str]]",
})

FileFileSearchArgs = TypedDict("FileFileSearchArgs", {
    "pattern": "str",
    "path": "NotRequired[str]",
    "glob": "NotRequired[str]",
    "case_sensitive": "NotRequired[bool]",
    "context_lines": "NotRequired[int]",
    "max_results": "NotRequired[int]",
    "include_hidden": "NotRequired[bool]",
    "include_ignored": "NotRequired[bool]",
})

FileFileSearchResultMatchesItem = TypedDict("FileFileSearchResultMatchesItem", {
    "path": "str",
    "line": "int",
    "content": "str",
})

FileFileSearchResultSkipped = TypedDict("FileFileSearchResultSkipped", {
    "binary": "int",
    "ignored": "int",
    "too_large": "int",
    "unreadable": "NotRequired[int | None]",
    "unnamed": "NotRequired[int | None]",
})

FileFileSearchResult = TypedDict("FileFileSearchResult", {
    "matches": "list[FileFileSearchResultMatchesItem]",
    "truncated": "bool",
    "skipped": "NotRequired[FileFileSearchResultSkipped | None]",
    "warnings": "NotRequired[list[str]]",
})

SystemListDirectoryArgs = TypedDict("SystemListDirectoryArgs", {
    "path": "str",
    "recursive": "NotRequired[bool]",
    "includeHidden": "NotRequired[bool]",
})

SystemListDirectoryResultEntriesItem = TypedDict("SystemListDirectoryResultEntriesItem", {
    "name": "str",
    "type": "Literal['file', 'directory', 'symlink']",
    "size": "int",
    "modified": "str",
})

SystemListDirectoryResultSkipped = TypedDict("SystemListDirectoryResultSkipped", {
    "unreadable": "NotRequired[list[str]]",
    "unnamed": "NotRequired[int | None]",
})

SystemListDirectoryResult = TypedDict("SystemListDirectoryResult", {
    "entries": "list[SystemListDirectoryResultEntriesItem]",
    "skipped": "NotRequired[SystemListDirectoryResultSkipped | None]",
    "warnings": "NotRequired[list[str]]",
})

SystemReadFileArgs = TypedDict("SystemReadFileArgs", {
    "path": "str",
    "encoding": "NotRequired[Literal['utf-8', 'base64']]",
})

SystemReadFileResult = TypedDict("SystemReadFileResult", {
    "content": "str",
    "size": "int",
    "modified": "str",
    "hash": "NotRequired[str | None]",
    "warnings": "NotRequired[list[str]]",
})

SystemWriteFileArgs = TypedDict("SystemWriteFileArgs", {
    "path": "str",
    "content": "str",
    "encoding": "NotRequired[Literal['utf-8', 'base64']]",
    "createDirs": "NotRequired[bool]",
    "expectedHash": "NotRequired[str]",
    "dryRun": "NotRequired[bool]",
})

SystemWriteFileResult = TypedDict("SystemWriteFileResult", {
    "path": "str",
    "size": "int",
    "hash": "str",
    "diff": "str",
    "warnings": "NotRequired[list[str]]",
})

SystemDeleteFileArgs = TypedDict("SystemDeleteFileArgs", {
    "path": "str",
    "recursive": "NotRequired[bool]",
    "expectedHash": "NotRequired[str]",
    "dryRun": "NotRequired[bool]",
})

SystemDeleteFileResult = TypedDict("SystemDeleteFileResult", {
    "deleted": "list[str]",
    "warnings": "NotRequired[list[str]]",
})

SystemMoveFileArgs = TypedDict("SystemMoveFileArgs", {
    "from": "str",
    "to": "str",
    "overwrite": "NotRequired[bool]",
    "expectedHash": "NotRequired[str]",
    "dryRun": "NotRequired[bool]",
})

SystemMoveFileResult = TypedDict("SystemMoveFileResult", {
    "from": "str",
    "to": "str",
    "warnings": "NotRequired[list[str]]",
})

SystemRunCodeArgs = TypedDict("SystemRunCodeArgs", {
    "language": "Literal['python', 'bash']",
    "code": "str",
    "args": "NotRequired[list[str]]",
    "env": "NotRequired[dict[str, str]]",
    "secrets": "NotRequired[list[str]]",
    "timeout": "NotRequired[float]",
    "memoryBytes": "NotRequired[int]",
})

SystemRunCodeResultChangesItem = TypedDict("SystemRunCodeResultChangesItem", {
    "path": "str",
    "change": "Literal['created'] | Literal['changed'] | Literal['moved'] | Literal['removed']",
    "from": "NotRequired[str | None]",
})

SystemRunCodeResultConflictsItem = TypedDict("SystemRunCodeResultConflictsItem", {
    "path": "str",
    "keptAs": "NotRequired[str | None]",
    "reason": "str",
})

SystemRunCodeResultLeftOutItem = TypedDict("SystemRunCodeResultLeftOutItem", {
    "path": "str",
    "reason": "Literal['ignored'] | Literal['too_large'] | Literal['too_much'] | Literal['link'] | Literal['git_config'] | Literal['new_repository'] | Literal['special'] | Literal['name'] | Literal['unreadable']",
})

SystemRunCodeResult = TypedDict("SystemRunCodeResult", {
    "stdout": "str",
    "stderr": "str",
    "exitCode": "int",
    "duration": "int",
    "limit": "NotRequired[str | None]",
    "enforcedBy": "Any",
    "commitId": "NotRequired[str | None]",
    "changesBy": "NotRequired[Literal['program'] | Literal['folder'] | None]",
    "changes": "NotRequired[list[SystemRunCodeResultChangesItem]]",
    "changesTotal": "NotRequired[int | None]",
    "conflicts": "NotRequired[list[SystemRunCodeResultConflictsItem]]",
    "leftOut": "NotRequired[list[SystemRunCodeResultLeftOutItem]]",
    "leftOutTotal": "NotRequired[int | None]",
    "warnings": "NotRequired[list[str]]",
})

SystemWebFetchArgs = TypedDict("SystemWebFetchArgs", {
    "url": "str",
    "method": "NotRequired[Literal['GET', 'POST']]",
    "headers": "NotRequired[dict[str, str]]",
    "body": "NotRequired[str]",
    "timeout": "NotRequired[float]",
    "format": "NotRequired[Literal['raw', 'markdown']]",
})

SystemWebFetchResult = TypedDict("SystemWebFetchResult", {
    "status": "int",
    "headers": "dict[str, str]",
    "body": "str",
    "bodyFormat": "NotRequired[str | None]",
    "redirectedTo": "NotRequired[str | None]",
    "warnings": "NotRequired[list[str]]",
})

SystemWebSearchArgs = TypedDict("SystemWebSearchArgs", {
    "query": "str",
    "numResults": "NotRequired[int]",
})

SystemWebSearchResultResultsItem = TypedDict("SystemWebSearchResultResultsItem", {
    "title": "str",
    "url": "str",
    "snippet": "str",
})

SystemWebSearchResult = TypedDict("SystemWebSearchResult", {
    "results": "list[SystemWebSearchResultResultsItem]",
    "warnings": "NotRequired[list[str]]",
})

SystemStartProcessArgs = TypedDict("SystemStartProcessArgs", {
    "command": "str",
    "env": "NotRequired[dict[str, str]]",
    "secrets": "NotRequired[list[str]]",
    "timeout": "NotRequired[float]",
    "memoryBytes": "NotRequired[int]",
})

SystemStartProcessResultChangesItem = TypedDict("SystemStartProcessResultChangesItem", {
    "path": "str",
    "change": "Literal['created'] | Literal['changed'] | Literal['moved'] | Literal['removed']",
    "from": "NotRequired[str | None]",
})

SystemStartProcessResultConflictsItem = TypedDict("SystemStartProcessResultConflictsItem", {
    "path": "str",
    "keptAs": "NotRequired[str | None]",
    "reason": "str",
})

SystemStartProcessResultLeftOutItem = TypedDict("SystemStartProcessResultLeftOutItem", {
    "path": "str",
    "reason": "Literal['ignored'] | Literal['too_large'] | Literal['too_much'] | Literal['link'] | Literal['git_config'] | Literal['new_repository'] | Literal['special'] | Literal['name'] | Literal['unreadable']",
})

SystemStartProcessResult = TypedDict("SystemStartProcessResult", {
    "id": "str",
    "command": "str",
    "state": "str",
    "startedAt": "str",
    "outputBytes": "int",
    "exitCode": "NotRequired[int | None]",
    "duration": "NotRequired[int | None]",
    "limit": "NotRequired[str | None]",
    "reason": "NotRequired[str | None]",
    "commitId": "NotRequired[str | None]",
    "changesBy": "NotRequired[Literal['program'] | Literal['folder'] | None]",
    "changes": "NotRequired[list[SystemStartProcessResultChangesItem]]",
    "changesTotal": "NotRequired[int | None]",
    "conflicts": "NotRequired[list[SystemStartProcessResultConflictsItem]]",
    "leftOut": "NotRequired[list[SystemStartProcessResultLeftOutItem]]",
    "leftOutTotal": "NotRequired[int | None]",
    "warnings": "NotRequired[list[str]]",
})

SystemListProcessesArgs = TypedDict("SystemListProcessesArgs", {
})

SystemListProcessesResultProcessesItemChangesItem = TypedDict("SystemListProcessesResultProcessesItemChangesItem", {
    "path": "str",
    "change": "Literal['created'] | Literal['changed'] | Literal['moved'] | Literal['removed']",
    "from": "NotRequired[str | None]",
})

SystemListProcessesResultProcessesItemConflictsItem = TypedDict("SystemListProcessesResultProcessesItemConflictsItem", {
    "path": "str",
    "keptAs": "NotRequired[str | None]",
    "reason": "str",
})

SystemListProcessesResultProcessesItemLeftOutItem = TypedDict("SystemListProcessesResultProcessesItemLeftOutItem", {
    "path": "str",
    "reason": "Literal['ignored'] | Literal['too_large'] | Literal['too_much'] | Literal['link'] | Literal['git_config'] | Literal['new_repository'] | Literal['special'] | Literal['name'] | Literal['unreadable']",
})

SystemListProcessesResultProcessesItem = TypedDict("SystemListProcessesResultProcessesItem", {
    "id": "str",
    "command": "str",
    "state": "str",
    "startedAt": "str",
    "outputBytes": "int",
    "exitCode": "NotRequired[int | None]",
    "duration": "NotRequired[int | None]",
    "limit": "NotRequired[str | None]",
    "reason": "NotRequired[str | None]",
    "commitId": "NotRequired[str | None]",
    "changesBy": "NotRequired[Literal['program'] | Literal['folder'] | None]",
    "changes": "NotRequired[list[SystemListProcessesResultProcessesItemChangesItem]]",
    "changesTotal": "NotRequired[int | None]",
    "conflicts": "NotRequired[list[SystemListProcessesResultProcessesItemConflictsItem]]",
    "leftOut": "NotRequired[list[SystemListProcessesResultProcessesItemLeftOutItem]]",
    "leftOutTotal": "NotRequired[int | None]",
})

SystemListProcessesResult = TypedDict("SystemListProcessesResult", {
    "processes": "list[SystemListProcessesResultProcessesItem]",
    "warnings": "NotRequired[list[str]]",
})

SystemReadOutputArgs = TypedDict("SystemReadOutputArgs", {
    "id": "str",
    "offset": "NotRequired[int]",
    "limit": "NotRequired[int]",
    "wait": "NotRequired[float]",
})

SystemReadOutputResultProcessChangesItem = TypedDict("SystemReadOutputResultProcessChangesItem", {
    "path": "str",
    "change": "Literal['created'] | Literal['changed'] | Literal['moved'] | Literal['removed']",
    "from": "NotRequired[str | None]",
})

SystemReadOutputResultProcessConflictsItem = TypedDict("SystemReadOutputResultProcessConflictsItem", {
    "path": "str",
    "keptAs": "NotRequired[str | None]",
    "reason": "str",
})

SystemReadOutputResultProcessLeftOutItem = TypedDict("SystemReadOutputResultProcessLeftOutItem", {
    "path": "str",
    "reason": "Literal['ignored'] | Literal['too_large'] | Literal['too_much'] | Literal['link'] | Literal['git_config'] | Literal['new_repository'] | Literal['special'] | Literal['name'] | Literal['unreadable']",
})

SystemReadOutputResultProcess = TypedDict("SystemReadOutputResultProcess", {
    "id": "str",
    "command": "str",
    "state": "str",
    "startedAt": "str",
    "outputBytes": "int",
    "exitCode": "NotRequired[int | None]",
    "duration": "NotRequired[int | None]",
    "limit": "NotRequired[str | None]",
    "reason": "NotRequired[str | None]",
    "commitId": "NotRequired[str | None]",
    "changesBy": "NotRequired[Literal['program'] | Literal['folder'] | None]",
    "changes": "NotRequired[list[SystemReadOutputResultProcessChangesItem]]",
    "changesTotal": "NotRequired[int | None]",
    "conflicts": "NotRequired[list[SystemReadOutputResultProcessConflictsItem]]",
    "leftOut": "NotRequired[list[SystemReadOutputResultProcessLeftOutItem]]",
    "leftOutTotal": "NotRequired[int | None]",
})

SystemReadOutputResult = TypedDict("SystemReadOutputResult", {
    "output": "str",
    "nextOffset": "int",
    "droppedBytes": "NotRequired[int | None]",
    "process": "SystemReadOutputResultProcess",
    "warnings": "NotRequired[list[str]]",
})

SystemWriteInputArgs = TypedDict("SystemWriteInputArgs", {
    "id": "str",
    "input": "str",
    "end": "NotRequired[bool]",
})

SystemWriteInputResultChangesItem = TypedDict("SystemWriteInputResultChangesItem", {
    "path": "str",
    "change": "Literal['created'] | Literal['changed'] | Literal['moved'] | Literal['removed']",
    "from": "NotRequired[str | None]",
})

SystemWriteInputResultConflictsItem = TypedDict("SystemWriteInputResultConflictsItem", {
    "path": "str",
    "keptAs": "NotRequired[str | None]",
    "reason": "str",
})

SystemWriteInputResultLeftOutItem = TypedDict("SystemWriteInputResultLeftOutItem", {
    "path": "str",
    "reason": "Literal['ignored'] | Literal['too_large'] | Literal['too_much'] | Literal['link'] | Literal['git_config'] | Literal['new_repository'] | Literal['special'] | Literal['name'] | Literal['unreadable']",
})

SystemWriteInputResult = TypedDict("SystemWriteInputResult", {
    "id": "str",
    "command": "str",
    "state": "str",
    "startedAt": "str",
    "outputBytes": "int",
    "exitCode": "NotRequired[int | None]",
    "duration": "NotRequired[int | None]",
    "limit": "NotRequired[str | None]",
    "reason": "NotRequired[str | None]",
    "commitId": "NotRequired[str | None]",
    "changesBy": "NotRequired[Literal['program'] | Literal['folder'] | None]",
    "changes": "NotRequired[list[SystemWriteInputResultChangesItem]]",
    "changesTotal": "NotRequired[int | None]",
    "conflicts": "NotRequired[list[SystemWriteInputResultConflictsItem]]",
    "leftOut": "NotRequired[list[SystemWriteInputResultLeftOutItem]]",
    "leftOutTotal": "NotRequired[int | None]",
    "warnings": "NotRequired[list[str]]",
})

SystemWaitProcessArgs = TypedDict("SystemWaitProcessArgs", {
    "id": "str",
    "timeout": "NotRequired[float]",
})

SystemWaitProcessResultChangesItem = TypedDict("SystemWaitProcessResultChangesItem", {
    "path": "str",
    "change": "Literal['created'] | Literal['changed'] | Literal['moved'] | Literal['removed']",
    "from": "NotRequired[str | None]",
})

SystemWaitProcessResultConflictsItem = TypedDict("SystemWaitProcessResultConflictsItem", {
    "path": "str",
    "keptAs": "NotRequired[str | None]",
    "reason": "str",
})

SystemWaitProcessResultLeftOutItem = TypedDict("SystemWaitProcessResultLeftOutItem", {
    "path": "str",
    "reason": "Literal['ignored'] | Literal['too_large'] | Literal['too_much'] | Literal['link'] | Literal['git_config'] | Literal['new_repository'] | Literal['special'] | Literal['name'] | Literal['unreadable']",
})

SystemWaitProcessResult = TypedDict("SystemWaitProcessResult", {
    "id": "str",
    "command": "str",
    "state": "str",
    "startedAt": "str",
    "outputBytes": "int",
    "exitCode": "NotRequired[int | None]",
    "duration": "NotRequired[int | None]",
    "limit": "NotRequired[str | None]",
    "reason": "NotRequired[str | None]",
    "commitId": "NotRequired[str | None]",
    "changesBy": "NotRequired[Literal['program'] | Literal['folder'] | None]",
    "changes": "NotRequired[list[SystemWaitProcessResultChangesItem]]",
    "changesTotal": "NotRequired[int | None]",
    "conflicts": "NotRequired[list[SystemWaitProcessResultConflictsItem]]",
    "leftOut": "NotRequired[list[SystemWaitProcessResultLeftOutItem]]",
    "leftOutTotal": "NotRequired[int | None]",
    "warnings": "NotRequired[list[str]]",
})

SystemStopProcessArgs = TypedDict("SystemStopProcessArgs", {
    "id": "str",
})

SystemStopProcessResultChangesItem = TypedDict("SystemStopProcessResultChangesItem", {
    "path": "str",
    "change": "Literal['created'] | Literal['changed'] | Literal['moved'] | Literal['removed']",
    "from": "NotRequired[str | None]",
})

SystemStopProcessResultConflictsItem = TypedDict("SystemStopProcessResultConflictsItem", {
    "path": "str",
    "keptAs": "NotRequired[str | None]",
    "reason": "str",
})

SystemStopProcessResultLeftOutItem = TypedDict("SystemStopProcessResultLeftOutItem", {
    "path": "str",
    "reason": "Literal['ignored'] | Literal['too_large'] | Literal['too_much'] | Literal['link'] | Literal['git_config'] | Literal['new_repository'] | Literal['special'] | Literal['name'] | Literal['unreadable']",
})

SystemStopProcessResult = TypedDict("SystemStopProcessResult", {
    "id": "str",
    "command": "str",
    "state": "str",
    "startedAt": "str",
    "outputBytes": "int",
    "exitCode": "NotRequired[int | None]",
    "duration": "NotRequired[int | None]",
    "limit": "NotRequired[str | None]",
    "reason": "NotRequired[str | None]",
    "commitId": "NotRequired[str | None]",
    "changesBy": "NotRequired[Literal['program'] | Literal['folder'] | None]",
    "changes": "NotRequired[list[SystemStopProcessResultChangesItem]]",
    "changesTotal": "NotRequired[int | None]",
    "conflicts": "NotRequired[list[SystemStopProcessResultConflictsItem]]",
    "leftOut": "NotRequired[list[SystemStopProcessResultLeftOutItem]]",
    "leftOutTotal": "NotRequired[int | None]",
    "warnings": "NotRequired[list[str]]",
})
