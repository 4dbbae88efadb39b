"""The OpenAPI document, made from the route table.

Owns: how routes, structs and reasons are described.
Must not: know any single route.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from inspect import cleandoc
from typing import Any

import msgspec

from gpucredits.api.call import DryRun, NoQuery, Route
from gpucredits.api.errors import EDGE_REASONS, status_of_word
from gpucredits.core import ids
from gpucredits.core.reasons import Reason
from gpucredits.service.access import ALLOWED, SYSTEM_ONLY
from gpucredits.version import __version__
from gpucredits.wire import problem
from gpucredits.wire.meanings import meaning_of
from gpucredits.wire.problem import Problem
from gpucredits.wire.scalars import AccountPath, GpuType, Region, Slug, schema_of

REF = "#/components/schemas/{name}"
JSON = "application/json"
ID_PREFIXES = {
    "request": ids.REQUEST,
    "statement": ids.STATEMENT,
    "reservation": ids.RESERVATION,
    "topup": ids.TOPUP,
    "grant": ids.GRANT,
    "key": ids.KEY,
    "queue": ids.QUEUE,
    "quota": ids.QUOTA,
    "boost": ids.BOOST,
}
PARAMS = {
    "account": "The path of the account, its slashes as they are.",
    "budget": "The name of the budget.",
    "gpu_type": "The GPU type of the pool; a slash in it as it is, or as %2F.",
    "region": "The region of the pool, such as default.",
    **{name: f"The id of the {name}." for name in ID_PREFIXES},
    "key": "The id of the key, not its secret.",
    "queue": "The id of the waiting request.",
    "topup": "The id of the top-up.",
}
POOL_PARAMS = {"gpu_type": GpuType, "region": Region}
EVERY_ROUTE = (
    "internal",
    "busy",
    "unavailable",
    "timeout",
    "clock_jumped",
    "malformed_request",
    "target_too_long",
    "head_too_large",
    "too_slow",
    "too_many_connections",
)
WITH_QUERY = ("invalid_request",)
WITH_KEY = ("unauthenticated", "key_expired", "forbidden", "rate_limited")
WITH_BODY = ("invalid_request", "too_large", "unsupported_media_type")
WITH_IDEMPOTENCY = (
    "idempotency_key_required",
    "idempotency_key_invalid",
    "idempotency_key_reused",
)


def openapi_document(routes: Sequence[Route]) -> dict[str, Any]:
    """The whole document."""
    kinds = _kinds(routes)
    schemas, components = msgspec.json.schema_components(
        kinds, schema_hook=schema_of, ref_template=REF
    )
    refs = dict(zip(kinds, schemas, strict=True))
    _describe(components)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, refs, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "gpucredits",
            "version": __version__,
            "summary": "GPU credits: an immutable double-entry ledger with leases.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "tags": [{"name": tag} for tag in sorted({route.tag for route in routes})],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key, gck_…"}
            },
        },
    }


def reasons_of(route: Route) -> list[str]:
    """Every reason that a route may give, sorted."""
    reasons = set(EVERY_ROUTE) | set(route.reasons) | set(WITH_QUERY)
    if route.permission is not None:
        reasons.update(WITH_KEY)
    if route.body is not None:
        reasons.update(WITH_BODY)
    if "{" in route.path:
        reasons.add("not_found")
    if route.needs_key:
        reasons.update(WITH_IDEMPOTENCY)
    return sorted(reasons)


def _describe(components: dict[str, Any]) -> None:
    """Say of each field what it means, before what its type says, and list a problem's reasons.

    The list is the document's alone: a client takes words that are newer than itself.
    """
    for shape, described in components.items():
        described["description"] = cleandoc(described["description"])
        described["properties"] = {
            name: {**schema, "description": _said(meaning_of(shape, name), schema)}
            for name, schema in described["properties"].items()
        }
    words = {*EDGE_REASONS, *(reason.value for reason in Reason)}
    components[Problem.__name__]["properties"]["reason"]["enum"] = sorted(words)


def _said(meaning: str, schema: dict[str, Any]) -> str:
    return f"{meaning} {schema.get('description', '')}".strip()


def _kinds(routes: Iterable[Route]) -> list[Any]:
    kinds: dict[Any, None] = {Problem: None, DryRun: None}
    for route in routes:
        kinds[route.answer] = None
        kinds.update((answer, None) for _, answer in route.other_answers)
        kinds[route.query] = None
        if route.body is not None:
            kinds[route.body] = None
    return list(kinds)


def _operation(route: Route, refs: dict[Any, Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "description": _description(route),
        "tags": [route.tag],
        "parameters": _parameters(route, components),
        "responses": _responses(route, refs),
    }
    if route.body is not None:
        operation["requestBody"] = {
            "required": not route.is_body_optional,
            "content": {JSON: {"schema": refs[route.body]}},
        }
    if route.permission is None:
        operation["security"] = []
    return operation


def _description(route: Route) -> str:
    text = (getattr(route.handler, "__doc__", "") or "").strip()
    if route.permission is None:
        return text
    roles = ", ".join(sorted(role.value for role in ALLOWED[route.permission]))
    scope = "; keys for the whole system only" if route.permission in SYSTEM_ONLY else ""
    return f"{text}\n\nRoles: {roles}{scope}."


def _parameters(route: Route, components: dict[str, Any]) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "description": PARAMS[name],
            "required": True,
            "schema": _param_schema(name),
        }
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]
    kinds = [route.query] + ([DryRun] if route.is_write else [])
    for kind in kinds:
        if kind is NoQuery:
            continue
        described = components[kind.__name__]
        parameters.extend(
            {
                "name": name,
                "in": "query",
                "description": _parameter_text(schema),
                "required": name in described.get("required", ()),
                "schema": _undescribed(_without_null(schema)),
            }
            for name, schema in described["properties"].items()
        )
    if route.needs_key:
        parameters.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": True,
                "description": "Same key and request: same answer. Other request: 409.",
                "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
            }
        )
    return parameters


def _param_schema(name: str) -> dict[str, Any]:
    if name == "account":
        return schema_of(AccountPath)
    if name in POOL_PARAMS:
        return _undescribed(schema_of(POOL_PARAMS[name]))
    return _id_schema(name)


def _id_schema(name: str) -> dict[str, Any]:
    if name == "budget":  # it has a name that was chosen for it
        return schema_of(Slug)
    prefix = ID_PREFIXES[name]
    return {
        "type": "string",
        "pattern": f"^{prefix}_[0-9a-z]{{1,7}}_[0-9a-z]{{1,12}}$",
        "examples": [f"{prefix}_1_5"],
    }


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A query parameter is given or left out; it is never null."""
    options = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    if not options:
        return schema
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return {**rest, **options[0]} if len(options) == 1 else {**rest, "anyOf": options}


def _parameter_text(schema: dict[str, Any]) -> str:
    """What a query parameter means, with what its type says where it may be left out."""
    said = [schema, *schema.get("anyOf", [])]
    return " ".join(each["description"] for each in said if "description" in each)


def _undescribed(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "description"}


def _responses(route: Route, refs: dict[Any, Any]) -> dict[str, Any]:
    headers = {"X-Request-Id": {"schema": {"type": "string"}}}
    responses: dict[str, Any] = {
        str(status): {
            "description": HTTPStatus(status).phrase,
            "headers": headers,
            "content": {route.media.partition(";")[0]: {"schema": refs[answer]}},
        }
        for status, answer in ((route.status, route.answer), *route.other_answers)
    }
    by_status: dict[HTTPStatus, list[str]] = {}
    for reason in reasons_of(route):
        by_status.setdefault(status_of_word(reason), []).append(reason)
    for status, reasons in sorted(by_status.items()):
        responses.setdefault(
            str(int(status)),
            {
                "description": f"{status.phrase}: {', '.join(reasons)}.",
                "headers": headers,
                "content": {problem.MEDIA_TYPE: {"schema": refs[Problem]}},
            },
        )
    return responses
