"""What follows from the route table was written again after the table changed."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gpucredits.api.routes import routes
from gpucredits.client import calls

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_METHOD = {"get_openapi", "get_metrics", "post_budget"}  # ``set_budget`` sends a PATCH


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The program that writes the files."""
    path = ROOT / "tools" / "operations.py"
    spec = importlib.util.spec_from_file_location("operations_tool", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their types
    spec.loader.exec_module(module)
    return module


def test_the_files_follow_the_route_table(tool: ModuleType) -> None:
    """The client's calls, its methods and the table of paths are what the routes say."""
    stale = [path.name for path, text in tool.written().items() if path.read_text() != text]
    assert stale == [], "run: make operations"


@pytest.mark.parametrize("change", [{"path": "/v1/other"}, {"needs_key": False}, {"client": ""}])
def test_a_changed_route_is_noticed(tool: ModuleType, change: dict[str, Any]) -> None:
    """The comparison is not blind: a route with another path, key or method changes the calls."""
    table = routes(has_test_clock=True)
    place = next(n for n, route in enumerate(table) if route.name == "post_transfer")
    changed = [*table[:place], replace(table[place], **change), *table[place + 1 :]]
    before, after = (tool.calls_source(list(tool.methods(each))) for each in (table, changed))
    assert before != after


def test_every_route_has_a_method_of_the_client() -> None:
    """A new operation is not forgotten in the client."""
    silent = {route.name for route in routes(has_test_clock=True) if not route.client}
    assert silent == WITHOUT_METHOD
    for route in routes(has_test_clock=True):
        for spec in filter(None, route.client.split("; ")):
            assert callable(getattr(calls, spec.partition("(")[0]))
