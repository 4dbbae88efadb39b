"""The other end of a TLS connection: the node that a client certificate names.

Owns: finding the node's name in a certificate, and matching the node with an API key.
Must not: check a certificate (TLS has done so before).
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
    """A refusal of an API key at this end of the connection: the reason and its text."""

    reason: str
    detail: str


def peer_of(certificate: Mapping[str, Any] | None, *, asks: bool) -> Peer:
    """The other end of a connection, from its certificate as Python's ssl module tells it."""
    if not asks or not certificate:
        return Peer(asks=asks)
    return Peer(asks=True, node=node_of(certificate))


def node_of(certificate: Mapping[str, Any]) -> str:
    """The node that a certificate names; empty if it names no node.

    The URI urn:gpucredits:node:NAME counts first, then the only DNS name, then the common name. A
    certificate with another URI of this product, such as a person's, names no node.
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
    """The caller, bound to the certificate's node if there is one; or why it is refused."""
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
