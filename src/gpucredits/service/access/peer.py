"""Who is at the other end of a TLS connection: the node that a client certificate names.

Owns: which name of a certificate is a node's, and how a node's certificate and a key go together.
Must not: check a certificate (TLS has done so before anything here is asked).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from gpucredits.service.access.permissions import Principal, Role

SCOPE_KEY: Final = "gpucredits.peer"  # in the scope of a request that came over TLS
NODE_URI: Final = "urn:gpucredits:node:"
OWN_URI: Final = "urn:gpucredits:"  # of certificates that this product makes for others than nodes
NAME_LENGTH_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end. ``asks``: the server asks for certificates. ``node``: empty for no node."""

    asks: bool = False
    node: str = ""


@dataclass(frozen=True, slots=True)
class OutOfPlace:
    """A key that is not accepted from where it comes: why, and in which words."""

    reason: str
    detail: str


def peer_of(certificate: Mapping[str, Any] | None, *, asks: bool) -> Peer:
    """The other end of a connection, from its certificate as Python's ssl module tells it."""
    if not asks or not certificate:
        return Peer(asks=asks)
    return Peer(asks=True, node=node_of(certificate))


def node_of(certificate: Mapping[str, Any]) -> str:
    """The node that a certificate names; empty for one of somebody else.

    That is the URI urn:gpucredits:node:NAME, else its only DNS name, else its common name. A
    certificate with another URI of ours, such as a person's, names no node.
    """
    names = certificate.get("subjectAltName", ())
    ours = [name for kind, name in names if kind == "URI" and name.startswith(OWN_URI)]
    if ours:
        nodes = [name.removeprefix(NODE_URI) for name in ours if name.startswith(NODE_URI)]
        return nodes[0][:NAME_LENGTH_MAX] if len(nodes) == len(ours) == 1 else ""
    hosts = [name for kind, name in names if kind == "DNS"]
    if len(hosts) == 1:
        return str(hosts[0])[:NAME_LENGTH_MAX]
    common = [
        text
        for part in certificate.get("subject", ())
        for name, text in part
        if name == "commonName"
    ]
    return str(common[0])[:NAME_LENGTH_MAX] if len(common) == 1 else ""


def placed(principal: Principal, peer: Peer) -> Principal | OutOfPlace:
    """The caller as it may act from where it is: on the certificate's node only, if it has one."""
    if peer.node:
        if principal.node and principal.node != peer.node:
            return OutOfPlace(
                "wrong_node",
                f"This key is for node {principal.node}, and the certificate is of {peer.node}.",
            )
        return replace(principal, node=peer.node, is_certified=True)
    if peer.asks and (principal.node or principal.role is Role.AGENT):
        who = f"bound to node {principal.node}" if principal.node else "with role agent"
        return OutOfPlace(
            "certificate_required",
            f"This server takes a key {who} only with the certificate of a node: give --cert and"
            " --cert-key (docs/nodes-and-certificates.md).",
        )
    return principal
