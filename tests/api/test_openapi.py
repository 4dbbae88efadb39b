"""The API is what its description says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
from schemathesis.specs.openapi.definitions import OPENAPI_31

from gpucredits.api.errors import EDGE_REASONS
from gpucredits.api.openapi import reasons_of
from gpucredits.api.routes import routes
from gpucredits.core.reasons import Reason
from support.http import Caller, RunningServer

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance,unsupported_method,"
    "allow_header_conformance,ignored_auth"
)
FUZZ_TIME_S = 30


def test_the_document_is_valid(http: httpx.Client) -> None:
    """The document keeps to OpenAPI 3.1, and every schema in it is one."""
    document = http.get("/v1/openapi.json").json()
    jsonschema_rs.validator_for(OPENAPI_31).validate(document)
    for name, schema in document["components"]["schemas"].items():
        assert jsonschema_rs.meta.is_valid(schema), name
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]


def references(value: Any) -> set[str]:
    """Every reference in a document."""
    if isinstance(value, dict):
        found = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return found.union(*(references(each) for each in value.values()))
    if isinstance(value, list):
        return set().union(*(references(each) for each in value))
    return set()


def test_every_operation_has_a_name_of_its_own() -> None:
    """Generated clients get one function for each row of the table."""
    names = [route.name for route in routes(has_test_clock=True)]
    assert len(names) == len(set(names))


def test_every_reason_is_documented_somewhere() -> None:
    """No refusal exists that no route announces."""
    announced = {reason for route in routes() for reason in reasons_of(route)}
    missing = {*EDGE_REASONS, *(reason.value for reason in Reason)} - announced
    assert missing == {"method_not_allowed"}


def test_the_clock_exists_only_where_it_was_asked_for(http: httpx.Client) -> None:
    """Without the flag there is no path to move time, described or not."""
    assert "/v1/test/clock" not in {route.path for route in routes()}
    assert "/v1/test/clock" in http.get("/v1/openapi.json").json()["paths"]


def test_fuzzing_finds_no_failure_and_no_undocumented_answer(
    admin: Caller, server: RunningServer
) -> None:
    """Thousands of odd requests within a bound of time: each gets an answer that is described."""
    for path in ("acme", "acme/vision", "acme/vision/alice"):
        admin.post("/v1/accounts", {"path": path})
    admin.post("/v1/credits/issue", {"account": "acme", "amount": "100000"})
    program = Path(sys.executable).with_name("schemathesis")
    command = [str(program), "run", f"{server.url}/v1/openapi.json"]
    result = subprocess.run(
        [
            *command,
            *("--header", f"Authorization: Bearer {admin.secret}"),
            *("--checks", CHECKS),
            *("--max-time", str(FUZZ_TIME_S)),
            *("--request-timeout", "20"),
            *("--exclude-path", "/v1/test/clock"),
            *("--warnings", "off"),
            "--continue-on-failure",
        ],
        capture_output=True,
        text=True,
        timeout=FUZZ_TIME_S * 4,
        cwd=server.data_dir,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-8_000:]
