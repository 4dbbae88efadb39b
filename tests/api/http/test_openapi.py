"""The API is what its description says."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast, get_type_hints

import httpx
import jsonschema_rs
import pytest
from msgspec import Meta, Struct
from schemathesis.specs.openapi.definitions import OPENAPI_31

from gpucredits.api.http.call import DryRun
from gpucredits.api.http.errors import EDGE_REASONS
from gpucredits.api.http.openapi import meanings_of, reasons_of, shapes_in
from gpucredits.api.routes import routes
from gpucredits.api.system import Description
from gpucredits.core.account import RESERVED_SEGMENTS, check_path
from gpucredits.core.reasons import Reason
from gpucredits.core.reservation import BEYOND_AUTHORISED, BEYOND_ELAPSED, SEQ_TAKEN, WENT_BACK, Why
from gpucredits.wire import scalars
from gpucredits.wire.problem import Problem
from gpucredits.wire.scalars import AccountPath, CreditsText, schema_of
from support.servers.http import Caller, RunningServer
from support.waiting import HANGS_S

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance,unsupported_method,"
    "allow_header_conformance,ignored_auth"
)
FUZZ_TIME_S = int(os.environ.get("FUZZ_SECONDS", "30"))
TYPE_SENTENCES = {  # what the types of scalars say of themselves
    each.description
    for value in vars(scalars).values()
    for each in getattr(value, "__metadata__", ())
    if isinstance(each, Meta)
}


def test_the_document_is_valid(http: httpx.Client) -> None:
    """The document keeps to OpenAPI 3.1, and every schema in it is one."""
    document = http.get("/v1/openapi.json").json()
    jsonschema_rs.validator_for(OPENAPI_31).validate(document)
    for name, schema in document["components"]["schemas"].items():
        assert jsonschema_rs.meta.is_valid(schema), name
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]


def test_the_document_is_made_once_and_only_for_who_asks() -> None:
    """A server starts without it, and the second reader gets what the first one got."""
    made = []

    def make() -> dict[str, Any]:
        made.append(1)
        return {"openapi": "3.1.0"}

    async def read_twice() -> None:
        [description] = [each.handler for each in routes() if each.path == "/v1/openapi.json"]
        assert isinstance(description, Description)
        description.make = make
        first = await description(cast("Any", None))
        assert first is await description(cast("Any", None))

    asyncio.run(read_twice())
    assert made == [1]


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


def shapes() -> set[type[Struct]]:
    """Every shape that the document describes."""
    table = routes(has_test_clock=True)
    kinds = [kind for route in table for kind in (route.answer, route.body, route.query)]
    others = [answer for route in table for _, answer in route.other_answers]
    return shapes_in([*kinds, *others, Problem, DryRun])


def own_sentence(hint: Any) -> str:
    """What a field says of itself: the sentence put around its type, if it is not the type's."""
    metas = [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Meta)]
    said = metas[-1].description if metas else None
    return "" if said is None or said in TYPE_SENTENCES else said


def test_every_field_says_what_it_means() -> None:
    """No field is without a sentence of its own, beyond what its type says."""
    fields = {
        (shape.__name__, name): own_sentence(hint)
        for shape in shapes()
        for name, hint in get_type_hints(shape, include_extras=True).items()
    }
    assert len(fields) > 700
    assert sorted(field for field, sentence in fields.items() if not sentence) == []
    assert own_sentence(get_type_hints(Unsaid, include_extras=True)["amount"]) == ""


class Unsaid(Struct):
    """A shape whose field says what its type says, and no more."""

    amount: CreditsText


def test_the_document_carries_the_meanings(http: httpx.Client) -> None:
    """Each field and each parameter has a description, and none has another field's."""
    document = http.get("/v1/openapi.json").json()
    schemas = document["components"]["schemas"]
    by_name = {shape.__name__: shape for shape in shapes()}
    assert schemas.keys() == by_name.keys()
    for shape, schema in schemas.items():
        meanings = meanings_of(by_name[shape])
        assert meanings.keys() == schema["properties"].keys()
        for name, field in schema["properties"].items():
            assert field["description"] == " ".join(meanings[name]), (shape, name)
            assert len(field["description"]) < 500, (shape, name)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for parameter in operation["parameters"]:
                assert parameter["description"], (path, parameter["name"])


def test_closed_lists_of_words_are_whole(http: httpx.Client) -> None:
    """The document lists every reason of a problem and all that a beat may be told."""
    schemas = http.get("/v1/openapi.json").json()["components"]["schemas"]
    reasons = schemas["Problem"]["properties"]["reason"]["enum"]
    assert set(reasons) == {*EDGE_REASONS, *(reason.value for reason in Reason)}
    beat = schemas["BeatAnswer"]["properties"]
    assert set(beat["flagged"]["enum"]) == {
        "",
        WENT_BACK,
        BEYOND_ELAPSED,
        BEYOND_AUTHORISED,
        SEQ_TAKEN,
    }
    told = set(beat["reason"]["enum"])
    assert told >= {*Why, "expired", "settled", "canceled"}
    assert told - {*reasons, *Why} == {"expired", "settled", "canceled"}
    assert {*Why} - {*reasons} == {"", "preempted", "max_amount", "overdraft"}


@pytest.mark.parametrize("path", ["acme", "acme/vision", "acme/tree-house/a.b_c-d", "0/1/2"])
def test_a_path_that_is_right_fits_its_pattern(path: str) -> None:
    """The pattern of a path takes what the rules take."""
    assert check_path(path) == path
    assert re.search(schema_of(AccountPath)["pattern"], path)


@pytest.mark.parametrize(
    "path", [*sorted(RESERVED_SEGMENTS), "acme/tree", "a/limits/b", "a/b/c/d", "A", "a//b", "-a"]
)
def test_a_path_that_is_wrong_does_not(path: str) -> None:
    """The pattern of a path refuses what the rules refuse, reserved words among it."""
    with pytest.raises(ValueError, match="must"):
        check_path(path)
    assert re.search(schema_of(AccountPath)["pattern"], path) is None


def test_the_clock_exists_only_where_it_was_asked_for(http: httpx.Client) -> None:
    """Without the flag there is no path to move time, described or not."""
    assert "/v1/test/clock" not in {route.path for route in routes()}
    assert "/v1/test/clock" in http.get("/v1/openapi.json").json()["paths"]


def test_fuzzing_finds_no_failure_and_no_undocumented_answer(
    admin: Caller, server: RunningServer
) -> None:
    """Odd requests to every operation for a bounded time: each answer is one that is described."""
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
            *("--request-timeout", str(HANGS_S)),
            *("--exclude-path", "/v1/test/clock"),
            *("--warnings", "off"),
            "--continue-on-failure",
        ],
        capture_output=True,
        text=True,
        timeout=FUZZ_TIME_S + 2 * HANGS_S,
        cwd=server.data_dir,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-8_000:]
