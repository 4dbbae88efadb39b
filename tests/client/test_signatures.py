"""Every method of the clients shows what it takes and returns, to people and to type checkers."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import AsyncIterator, Iterator
from typing import Literal, assert_type, get_args, get_origin

import pytest
from msgspec import Struct

from gpucredits.client import AsyncClient, Client
from gpucredits.client.operations import Listing, Operation, Operations
from gpucredits.wire.dispatch.queue import QueueAnswer
from gpucredits.wire.ledger.account import AccountAnswer
from gpucredits.wire.ledger.reservation import ReservationAnswer

OPERATIONS = {
    name: each for name, each in vars(Operations).items() if isinstance(each, Operation | Listing)
}
KINDS: list[type[Client | AsyncClient]] = [Client, AsyncClient]


def test_there_are_operations() -> None:
    """The tests below are not blind: they see every kind of method."""
    assert len(OPERATIONS) > 100
    assert {type(each) for each in OPERATIONS.values()} == {Operation, Listing}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_method_shows_its_real_parameters(name: str, kind: type[Client | AsyncClient]) -> None:
    """Each parameter has a name and a type, and the answer is named, of the class and bound."""
    method = getattr(kind, name)
    assert (method.__name__, method.__qualname__) == (name, f"{kind.__name__}.{name}")
    shown = inspect.signature(method)
    first, *others = shown.parameters.values()
    assert first.name == "self"
    for parameter in others:
        assert parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        assert parameter.annotation is not parameter.empty
        assert not isinstance(parameter.annotation, str)
    returned = shown.return_annotation
    if isinstance(OPERATIONS[name], Listing):
        assert get_origin(returned) is (Iterator if kind is Client else AsyncIterator)
        (returned,) = get_args(returned)
    assert issubclass(returned, Struct)
    is_awaited = kind is AsyncClient and isinstance(OPERATIONS[name], Operation)
    assert inspect.iscoroutinefunction(method) == is_awaited
    client = kind.__new__(kind)
    assert list(inspect.signature(getattr(client, name)).parameters.values()) == others
    assert method.__doc__


@pytest.mark.parametrize("name", OPERATIONS)
def test_both_clients_take_the_same(name: str) -> None:
    """The parameters of the two clients do not differ."""
    one, other = (inspect.signature(getattr(kind, name)).parameters for kind in KINDS)
    assert one == other


@pytest.mark.parametrize("name", ["reserve", "explain", "enqueue"])
def test_the_fields_of_a_job_are_parameters(name: str) -> None:
    """What is unpacked is shown field by field, and what is required has no default."""
    parameters = inspect.signature(getattr(Client, name)).parameters
    assert parameters["gpu_type"].annotation is str
    assert parameters["gpu_type"].default is inspect.Parameter.empty
    assert parameters["window_seconds"].annotation == int | None
    assert parameters["window_seconds"].default is None
    assert "fields" not in parameters


def test_help_shows_it() -> None:
    """``help(client.reserve)`` has the parameters, the type of the answer and the text."""
    client = Client.__new__(Client)
    text = pydoc.plain(pydoc.render_doc(client.reserve))
    assert "reserve(account: str, *, job_id: str, gpu_type: str, gpu_count: str | int |" in text
    assert "-> gpucredits.wire.ledger.reservation.ReservationAnswer" in text
    assert "Ask for a lease" in text
    waiting = AsyncClient.__new__(AsyncClient)
    assert "async reserve(account: str, *" in pydoc.plain(pydoc.render_doc(waiting.reserve))
    assert "accounts(" in pydoc.plain(pydoc.render_doc(client.accounts))


def test_a_method_of_the_class_works_too(direct: Client, org: str) -> None:
    """A method that is taken from the class and given a client makes the same call."""
    assert Client.account(direct, org) == direct.account(org)
    assert list(Client.accounts(direct, under=org)) == [direct.account(org)]


async def typed(client: Client, other: AsyncClient, role: Literal["member"]) -> None:
    """What type checkers see: mypy fails the build if one of these types or errors is not so."""
    assert_type(client.reserve("a", job_id="j", gpu_type="h100"), ReservationAnswer)
    assert_type(client.enqueue("a", job_id="j", gpu_type="h100", gang_size=2), QueueAnswer)
    assert_type(client.accounts(under="a"), Iterator[AccountAnswer])
    assert_type(other.accounts(under="a"), AsyncIterator[AccountAnswer])
    assert_type(await other.reserve("a", job_id="j", gpu_type="h100"), ReservationAnswer)
    assert_type(Client.account(client, "a"), AccountAnswer)
    client.create_key(role)
    client.reserve("a", job_id="j")  # type: ignore[call-arg]
    client.reserve("a", job_id="j", gpu_type="h100", gpus=2)  # type: ignore[call-arg]
    client.reserve("a", job_id="j", gpu_type="h100", gpu_count=2.5)  # type: ignore[arg-type]
    client.issue("a", 1.5)  # type: ignore[arg-type]
