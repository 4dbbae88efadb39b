"""The OpenAPI document, made from the route table.

Owns: how routes, structs and reasons are described.
Must not: know any single route.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from inspect import cleandoc
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from gpucredits.api.http.call import DryRun, NoQuery, Route
from gpucredits.api.http.errors import EDGE_REASONS, status_of_word
from gpucredits.core import ids
from gpucredits.core.reasons import Reason
from gpucredits.service.access.permissions import ALLOWED, SYSTEM_ONLY
from gpucredits.version import __version__
from gpucredits.wire import problem
from gpucredits.wire.problem import Problem
from gpucredits.wire.scalars import SCHEMAS, AccountPath, GpuType, Region, Slug, schema_of

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
    "letter": ids.DEAD_LETTER,
    "alarm": ids.ALARM,
    "unmatched": ids.UNMATCHED,
}
PARAMS = {
    "account": "The path of the account, its slashes as they are.",
    "budget": "The name of the budget.",
    "consumer": "The name of the reader of events.",
    "gpu_type": "The GPU type of the pool; a slash in it as it is, or as %2F.",
    "region": "The region of the pool, such as default.",
    **{name: f"The id of the {name}." for name in ID_PREFIXES},
    "key": "The id of the key, not its secret.",
    "queue": "The id of the waiting request.",
    "signing_key": "The id of the signing key.",
    "letter": "The id of the dead letter.",
    "topup": "The id of the top-up.",
    "unmatched": "The id of the unmatched use.",
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
WITH_KEY = (
    "unauthenticated",
    "key_expired",
    "forbidden",
    "certificate_required",
    "wrong_node",
    "rate_limited",
)
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
    _describe(components, shapes_in(kinds))
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


def _describe(components: dict[str, Any], shapes: set[type[Struct]]) -> None:
    """Put the meaning of each field before what its type says, and list a problem's reasons.

    The list is the document's alone: a client takes words that are newer than itself.
    """
    for shape in shapes:
        described = components[shape.__name__]
        described["description"] = cleandoc(described["description"])
        for field, sentences in meanings_of(shape).items():
            described["properties"][field]["description"] = " ".join(sentences)
    words = {*EDGE_REASONS, *(reason.value for reason in Reason)}
    components[Problem.__name__]["properties"]["reason"]["enum"] = sorted(words)


def shapes_in(kinds: Iterable[Any]) -> set[type[Struct]]:
    """Every shape that is in some types, at any depth."""
    found: set[type[Struct]] = set()
    waiting = list(kinds)
    while waiting:
        kind = waiting.pop()
        if not isinstance(kind, type) or not issubclass(kind, Struct):
            waiting += get_args(kind)
        elif kind not in found:
            found.add(kind)
            waiting += get_type_hints(kind).values()
    return found


def meanings_of(shape: type[Struct]) -> dict[str, list[str]]:
    """What each field of a shape means, as its own sentence and those of its type."""
    hints = get_type_hints(shape, include_extras=True)
    return {
        field.encode_name: list(_sentences(hints[field.name]))
        for field in msgspec.structs.fields(shape)
    }


def _sentences(hint: Any) -> Iterator[str]:
    """The outermost sentence of a type first."""
    if get_origin(hint) is Annotated:
        for each in reversed(hint.__metadata__):
            if isinstance(each, msgspec.Meta) and each.description:
                yield each.description
        hint = hint.__origin__
    if said := SCHEMAS.get(hint, {}).get("description"):
        yield said


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
    if route.permission is None:
        return route.text
    roles = ", ".join(sorted(role.value for role in ALLOWED[route.permission]))
    scope = "; keys for the whole system only" if route.permission in SYSTEM_ONLY else ""
    return f"{route.text}\n\nRoles: {roles}{scope}."


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
    if name == "signing_key":
        return {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$"}
    return _id_schema(name)


def _id_schema(name: str) -> dict[str, Any]:
    if name in ("budget", "consumer"):  # it has a name that was chosen for it
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
