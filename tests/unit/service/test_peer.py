"""The node that a certificate names, and how it goes together with a key."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpucredits.service.access.peer import OutOfPlace, node_of, peer_of, placed
from gpucredits.service.access.permissions import (
    ON_A_NODE,
    Permission,
    Principal,
    Role,
    attests,
    may,
)


def certificate(*names: tuple[str, str], common: str = "") -> dict[str, Any]:
    """A certificate as Python's ssl module tells it."""
    subject = ((("organizationName", "o"),), *(((("commonName", common),),) if common else ()))
    return {"subject": subject, "subjectAltName": names}


PERSON = certificate(("URI", "urn:gpucredits:person:ann"), common="gpu-7")


@pytest.mark.parametrize(
    ("given", "node"),
    [
        (certificate(("URI", "urn:gpucredits:node:gpu-7"), common="x"), "gpu-7"),
        (certificate(("URI", "urn:gpucredits:node:gpu-7"), ("DNS", "gpu-8")), "gpu-7"),
        (certificate(("DNS", "gpu-7")), "gpu-7"),
        (certificate(("DNS", "gpu-7"), common="gpu-8"), "gpu-7"),
        (certificate(common="gpu-7"), "gpu-7"),
        (certificate(("DNS", "a"), ("DNS", "b"), common="gpu-7"), "gpu-7"),
        (certificate(("URI", "spiffe://a/b"), common="gpu-7"), "gpu-7"),
        (certificate(("URI", "urn:gpucredits:client:alice"), common="alice"), ""),
        (
            certificate(("URI", "urn:gpucredits:node:a"), ("URI", "urn:gpucredits:node:b")),
            "",
        ),
        (
            certificate(("URI", "urn:gpucredits:node:a"), ("URI", "urn:gpucredits:client:b")),
            "",
        ),
        (certificate(("DNS", "a"), ("DNS", "b")), ""),
        (certificate(), ""),
        ({}, ""),
    ],
)
def test_the_node_of_a_certificate(given: dict[str, Any], node: str) -> None:
    """Its URI of ours, else its only host name, else its common name; never one of several."""
    assert node_of(given) == node


def key(role: Role = Role.AGENT, node: str = "") -> Principal:
    """A key of an org."""
    return Principal(key_id=1, org_id=1, role=role, scope="acme", node=node)


def reason(found: Principal | OutOfPlace) -> str:
    """Why a key is out of place; empty if it is not."""
    return found.reason if isinstance(found, OutOfPlace) else ""


def test_a_certificate_binds_whatever_key_comes_with_it() -> None:
    """An unbound key acts for the certificate's node only; one of another node does not act."""
    there = peer_of(certificate(common="gpu-7"), asks=True)
    for role in Role:
        found = placed(key(role), there)
        assert isinstance(found, Principal)
        assert found.node == "gpu-7"
    assert reason(placed(key(node="gpu-7"), there)) == ""
    assert reason(placed(key(node="gpu-8"), there)) == "wrong_node"


def test_a_node_attests_if_the_system_vouches_for_it() -> None:
    """By the node's certificate, or by a key for nodes that staff of the system made."""
    there = peer_of(certificate(common="gpu-7"), asks=True)
    for role in Role:
        certified = placed(key(role), there)
        assert isinstance(certified, Principal)
        assert attests(certified)
        for node in ("", "gpu-7"):
            own = key(role, node)
            assert not attests(own), "made by the tenant"
            made = replace(own, by_system=True)
            assert attests(made) == (role is Role.AGENT or node != "")
    person = placed(key(Role.MEMBER), peer_of(PERSON, asks=True))
    assert isinstance(person, Principal)
    assert not attests(person)


def test_agents_need_a_certificate_where_the_server_asks_for_one() -> None:
    """People need none; and nobody does where certificates are not asked for."""
    nobody, person = peer_of(None, asks=True), peer_of(PERSON, asks=True)
    for there in (nobody, person):
        assert reason(placed(key(), there)) == "certificate_required"
        assert reason(placed(key(Role.MEMBER, "gpu-7"), there)) == "certificate_required"
        assert placed(key(Role.MEMBER), there) == key(Role.MEMBER)
    plain = peer_of(certificate(common="gpu-7"), asks=False)
    assert placed(key(node="gpu-8"), plain) == key(node="gpu-8")


def test_on_a_node_a_role_keeps_a_part_of_what_it_may() -> None:
    """Never more than the role, and nothing that is not about leases, prices or itself."""
    for role in Role:
        free = {each for each in Permission if may(key(role), each)}
        bound = {each for each in Permission if may(key(role, "gpu-7"), each)}
        assert bound == free & ON_A_NODE
    assert not may(key(Role.AGENT, "gpu-7"), Permission.RESERVE)
    assert may(key(Role.MEMBER, "gpu-7"), Permission.RESERVE)
