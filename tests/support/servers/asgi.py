"""Requests to the application itself, message by message, without a server in between."""

from __future__ import annotations

import json
from typing import Any

from gpucredits.app import App

GONE = {"type": "http.disconnect"}


async def ask(
    app: App, path: str, body: Any, key: str, messages: list[dict[str, Any]] | None = None
) -> tuple[int, Any]:
    """A request to the application itself, which gets just these messages."""
    content = json.dumps(body).encode()
    coming = iter(messages or [{"type": "http.request", "body": content, "more_body": False}])
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return next(coming, GONE)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = {
        "authorization": f"Bearer {app.config.admin_key_path.read_text().strip()}",
        "idempotency-key": key,
        "content-type": "application/json",
        "content-length": str(len(content)),
    }
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    await app.api(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])
