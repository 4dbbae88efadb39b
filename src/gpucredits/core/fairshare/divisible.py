"""What each tenant's fair share is, if work could be cut as finely as we like.

Owns: the divisible allocation over the tree, which defines "its share" everywhere else.
Must not: look at single jobs.

Level by level, a node's share is divided among its children by weighted max-min on their dominant
shares, none getting more than it can use. With one resource this is hierarchical weighted max-min,
exactly; with one level it is dominant resource fairness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import add
from typing import Final

from gpucredits.core.fairshare.filling import (
    POINT,
    Claim,
    Fraction,
    ceiling_of,
    fill_dominantly,
    fill_exactly,
    floor_of,
    reduced,
)
from gpucredits.core.fairshare.snapshot import Amounts, Capacity, PoolSnapshot, Tenant
from gpucredits.core.fairshare.tree import Node, Tree

_SHOWN: Final = 20


def divisible(
    capacity: Capacity, *, tenants: Iterable[Tenant] = (), demands: Mapping[str, Amounts]
) -> dict[str, Fraction]:
    """The fair dominant share of every tenant at every level, as a fraction of the pool.

    For callers of the library and for tests: ``decide`` fills a tree of its own.

    >>> divisible((("cpu", 9), ("memory", 18)), demands={"a": (10, 40), "b": (30, 10)})
    {'a': (2, 3), 'b': (2, 3)}
    """
    tree = Tree(PoolSnapshot(pool="", now=0, capacity=capacity, tenants=tuple(tenants)))
    if not tree.names:
        return {}
    for path, amounts in demands.items():
        need = tree.vector(amounts)
        for node in tree.lineage(tree.leaf(path)):
            node.demand = tuple(map(add, node.demand, need))
    fill(tree)
    return {node.path: share_of(node.fair, tree) for node in tree.nodes() if node.name}


def share_of(amount: Fraction, tree: Tree) -> Fraction:
    """A scaled amount as a fraction of the pool, in lowest terms.

    Fixed-point amounts keep twenty fractional bits: enough for people, and 2/3 stays 2/3.
    """
    numerator, denominator = amount
    if denominator == 1 << POINT:
        numerator = (numerator + (1 << (POINT - _SHOWN - 1))) >> (POINT - _SHOWN)
        denominator = 1 << _SHOWN
    return reduced(numerator, denominator * tree.capacity)


def fill(tree: Tree) -> None:
    """Set the fair share of every node from its demand, its weight and its siblings'."""
    orgs = tree.root.children.values()
    total = sum(org.weight for org in orgs)
    for org in orgs:
        org.entitled = tree.capacity * org.weight // total if total else 0
    if len(tree.names) == 1:
        _fill_exactly(list(orgs), (tree.capacity, 1))
    else:
        _fill_dominantly(list(orgs), (tree.capacity << POINT,) * len(tree.names))


def _fill_exactly(nodes: list[Node], budget: Fraction) -> None:
    for node, share in zip(nodes, fill_exactly(_claims(nodes), budget), strict=True):
        _set_share(node, share)
        if node.children:
            _fill_exactly(list(node.children.values()), share)


def _fill_dominantly(nodes: list[Node], budget: tuple[int, ...]) -> None:
    for node, share in zip(nodes, fill_dominantly(_claims(nodes), budget), strict=True):
        _set_share(node, (share, 1 << POINT))
        if node.children:
            dominant = max(node.demand) or 1
            inner = tuple(share * amount // dominant for amount in node.demand)
            _fill_dominantly(list(node.children.values()), inner)


def _claims(nodes: list[Node]) -> list[Claim]:
    return [Claim(node.weight, node.demand, _limit(node)) for node in nodes]


def _limit(node: Node) -> int:
    wanted = max(node.demand)
    return wanted if node.may_borrow or node.level != 1 else min(wanted, node.entitled)


def _set_share(node: Node, share: Fraction) -> None:
    node.fair = share
    node.floor = floor_of(share)
    node.ceiling = ceiling_of(share)
    node.twice = floor_of((2 * share[0], share[1]))
