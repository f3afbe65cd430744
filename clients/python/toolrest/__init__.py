"""A client of Toolrest. The types are made from the OpenAPI description of the server (`types.py`)."""

from toolrest.client import ApprovalRequired, ToolrestError, ToolsClient

__all__ = ["ApprovalRequired", "ToolrestError", "ToolsClient"]
