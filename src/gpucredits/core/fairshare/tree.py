"""The tenants of a pool as a tree with totals, org, project, user; and the fair share of each.

Owns: nodes, the scale in which their holdings are compared, the order of the queue, and the
divisible allocation over the tree: what each share is if work could be cut as finely as we like.
That defines "its share" everywhere else.
Must not: decide who starts or stops.

Amounts are scaled so that every resource of the pool has the same capacity, the least common
multiple of all: a node's dominant share is then simply its largest amount. A tenant that is an org
or a project gets a nameless node on the levels below, so that every path has three steps.

Level by level, a node's share is divided among its children by weighted max-min on their dominant
shares, none getting more than it can use. With one resource this is hierarchical weighted max-min,
exactly; with one level it is dominant resource fairness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heapreplace
from math import lcm
from operator import add, itemgetter, sub
from typing import Final, NamedTuple

from gpucredits.core.fairshare.filling import (
    POINT,
    Claim,
    Fraction,
    Vector,
    ceiling_of,
    fill_dominantly,
    fill_exactly,
    floor_of,
    ratio_scale,
    reduced,
)
from gpucredits.core.fairshare.snapshot import (
    PATH_DEPTH,
    Amounts,
    Capacity,
    PoolSnapshot,
    RunningJob,
    Tenant,
    UsageOrder,
    WaitingRequest,
)

_SHOWN: Final = 20

Entry = tuple[bool, int, int, int, int, str, "Node"]


class WorkUnit(NamedTuple):
    """What starts together: one request, or all members of a gang; sorts in its tenant's order."""

    rank: int  # the more important, the lower
    submitted_at: int
    unit_id: str  # read by nobody: it makes the order total
    need: Vector
    duration_ms: int | None
    requests: tuple[WaitingRequest, ...]


class Node:
    """A tenant at one level, with what it holds and what it may hold.

    ``held`` counts running work, and whatever earlier units of this cycle were given or have a
    claim to. ``floor`` and ``ceiling`` are the fair share rounded both ways, and ``twice`` is
    double the share rounded down, so that comparing whole amounts with them is exact.
    """

    __slots__ = (
        "before",
        "ceiling",
        "children",
        "cursor",
        "demand",
        "dominant",
        "entitled",
        "fair",
        "floor",
        "head",
        "heap",
        "held",
        "level",
        "may_borrow",
        "name",
        "parent",
        "path",
        "scale",
        "twice",
        "units",
        "usage",
        "weight",
    )

    def __init__(self, path: str, name: str, parent: Node | None, settings: Tenant | None) -> None:
        self.path = path
        self.name = name
        self.parent = parent
        self.level: int = parent.level + 1 if parent else 0
        self.weight = settings.weight if settings else 1
        self.usage = settings.usage if settings else 0
        self.may_borrow = settings.may_borrow if settings else True
        self.children: dict[str, Node] = {}
        self.held: Vector = ()
        self.before: Vector = ()
        self.demand: Vector = ()
        self.dominant = 0
        self.entitled = 0
        self.fair: Fraction = (0, 1)
        self.floor = 0
        self.ceiling = 0
        self.twice = 0
        self.scale = 1
        self.heap: list[Entry] = []
        self.units: list[WorkUnit] = []
        self.cursor = 0
        self.head: WorkUnit | None = None

    def hold(self, amounts: Vector) -> None:
        """Add to what this tenant holds."""
        self.held = tuple(map(add, self.held, amounts))
        self.dominant = max(self.held)

    def let_go(self, amounts: Vector) -> None:
        """Take away from what this tenant holds."""
        self.held = tuple(map(sub, self.held, amounts))
        self.dominant = max(self.held)

    def dominant_with(self, need: Vector) -> int:
        """The dominant share, scaled, if this tenant held so much more."""
        dominant: int = max(map(add, self.held, need))
        return dominant

    @property
    def above_share(self) -> bool:
        """Whether it holds more than its fair share."""
        return self.dominant > self.floor

    @property
    def below_share(self) -> bool:
        """Whether it holds less than its fair share."""
        return self.dominant < self.ceiling

    def stays_within_share(self, need: Vector) -> bool:
        """Whether it could hold so much more without going above its fair share."""
        return self.dominant_with(need) <= self.floor


class Tree:
    """A pool's tenants with the totals of a snapshot."""

    def __init__(self, snapshot: PoolSnapshot) -> None:
        sized = [(name, amount) for name, amount in snapshot.capacity if amount]
        self.names = tuple(name for name, _ in sized)
        self.capacity: int = lcm(*(amount for _, amount in sized))
        self.scales = tuple(self.capacity // amount for _, amount in sized)
        self.zero: Vector = (0,) * len(sized)
        self.lacks_a_resource = len(sized) < len(snapshot.capacity)
        self._axes = [axis for axis, (_, amount) in enumerate(snapshot.capacity) if amount]
        self._width = len(snapshot.capacity)
        self._vectors: dict[Amounts, Vector] = {}
        self._is_single = len(sized) == 1
        self._counts_usage = snapshot.policy.usage_order is not UsageOrder.IGNORED
        self._usage_first = snapshot.policy.usage_order is UsageOrder.FIRST
        patience_ms = snapshot.policy.hold_after_ms
        self._aged_before = snapshot.now - patience_ms * 1_000 if patience_ms else -1
        self._priority_level = PATH_DEPTH - snapshot.policy.priority_scope
        self.settings = {tenant.path: tenant for tenant in snapshot.tenants}
        self.root = Node("", "", None, None)
        self.leaves: dict[str, Node] = {}
        self.promised: list[RunningJob] = []  # running work that overtook somebody
        for path in self.settings:
            self.leaf(path)

    def leaf(self, path: str) -> Node:
        """The node at the end of a tenant's path; made when it is not there yet."""
        leaf = self.leaves.get(path)
        if leaf is None:
            node = self.root
            segments = path.split("/")
            segments += [""] * (PATH_DEPTH - len(segments))
            for name in segments:
                child = node.children.get(name)
                if child is None:
                    place = f"{node.path}/{name}" if node.path else name
                    child = Node(place, name, node, self.settings.get(place))
                    child.held = child.before = child.demand = self.zero
                    node.children[name] = child
                node = child
            leaf = self.leaves[path] = node
        return leaf

    def vector(self, amounts: Amounts) -> Vector:
        """Amounts scaled, of the resources that the pool has any of."""
        vector = self._vectors.get(amounts)
        if vector is None:
            vector = self._vectors[amounts] = tuple(
                amounts[axis] * scale for axis, scale in zip(self._axes, self.scales, strict=True)
            )
        return vector

    def load_running(self, jobs: Iterable[RunningJob]) -> list[RunningJob]:
        """Count running work as held and as demand; returns the jobs that were told to stop.

        Such a job still uses capacity, but its tenant no longer holds that.
        """
        stopping: list[RunningJob] = []
        by_tenant: dict[str, list[Amounts]] = {}
        for job in jobs:
            _, tenant, amounts, _, _, _, _, _, stopping_at, promised_end = job
            if stopping_at is not None:
                stopping.append(job)
                continue
            if promised_end is not None:
                self.promised.append(job)
            if tenant in by_tenant:
                by_tenant[tenant].append(amounts)
            else:
                by_tenant[tenant] = [amounts]
        axes = [itemgetter(axis) for axis in range(self._width)]
        for tenant, group in by_tenant.items():
            total = self.vector(tuple(sum(map(axis, group)) for axis in axes))
            for node in self.lineage(self.leaf(tenant)):
                node.hold(total)
        for node in self.nodes():
            node.before = node.demand = node.held
        return stopping

    def held(self) -> Vector:
        """What all tenants hold together."""
        orgs = [org.held for org in self.root.children.values()]
        return tuple(map(sum, zip(self.zero, *orgs, strict=True)))

    def load_waiting(self, leaf: Node, units: list[WorkUnit]) -> None:
        """Queue a tenant's units in their order, and count them as demand."""
        units.sort()
        leaf.units = units
        leaf.head = units[0]
        total = tuple(map(sum, zip(*(unit.need for unit in units), strict=True)))
        for node in self.lineage(leaf):
            node.demand = tuple(map(add, node.demand, total))

    def lineage(self, leaf: Node) -> tuple[Node, Node, Node]:
        """User, project and org of a leaf."""
        project = leaf.parent or self.root
        return leaf, project, project.parent or self.root

    def nodes(self) -> list[Node]:
        """Every tenant, parents first, in path order."""
        found: list[Node] = []
        stack = [self.root]
        while stack:
            node = stack.pop()
            if node is not self.root:
                found.append(node)
            stack += sorted(node.children.values(), key=lambda child: child.name, reverse=True)
        return found

    def start_queue(self) -> None:
        """Build the heaps: at every node, the child whose turn it is comes first."""
        for node in [*reversed(self.nodes()), self.root]:
            if not node.children:
                continue
            scale = ratio_scale([child.weight for child in node.children.values()])
            for child in node.children.values():
                child.scale = scale
            node.heap = [self.entry(child) for child in node.children.values() if child.head]
            heapify(node.heap)
            node.head = node.heap[0][-1].head if node.heap else None

    def entry(self, node: Node) -> Entry:
        """Where a node stands among its siblings, by the unit that it would start next.

        Weightless siblings come last. First come those whose unit stays within their fair share
        (or is larger than all of it, has waited long, and they hold nothing), then those whom it
        brings nearer to their share, those who are still below it, and those who would borrow.
        Within these, priority where the policy lets it count, the smallest holding for the
        weight, and the name.
        """
        unit, held, dominant = node.head, node.held, node.dominant
        if unit is None:
            raise ValueError("a node without a unit has no place in a queue")
        # With one resource, which is common, there is no need to look for the dominant one.
        total = held[0] + unit.need[0] if self._is_single else max(map(add, held, unit.need))
        if total <= node.floor:
            tier = 0
        elif dominant >= node.ceiling:
            tier = 3
        elif not dominant and unit.submitted_at <= self._aged_before:
            tier = 0
        else:
            tier = 1 if dominant + total <= node.twice else 2
        first = dominant * node.scale // (node.weight or 1)
        second = 0
        if self._counts_usage:
            second = node.usage * node.scale // (node.weight or 1)
            if self._usage_first:
                first, second = second, first
        rank = unit.rank if node.level > self._priority_level else 0
        return not node.weight, tier, rank, first, second, node.name, node

    def priority_counts(self, node: Node) -> bool:
        """Whether the policy lets priority order this node among its siblings."""
        return node.level > self._priority_level

    def next_leaf(self) -> Node | None:
        """The tenant whose turn it is, or None when nobody waits."""
        node = self.root
        while node.heap:
            node = node.heap[0][-1]
        return None if node is self.root else node

    def advance(self, leaf: Node, claimed: Vector | None) -> None:
        """Go on to the leaf's next unit; what was claimed counts as held from here on."""
        leaf.cursor += 1
        leaf.head = leaf.units[leaf.cursor] if leaf.cursor < len(leaf.units) else None
        node = leaf
        parent = node.parent
        while parent is not None:
            if claimed is not None:
                if self._is_single:
                    node.dominant += claimed[0]
                    node.held = (node.dominant,)
                else:
                    node.held = tuple(map(add, node.held, claimed))
                    node.dominant = max(node.held)
            heap = parent.heap
            if node.head is None:
                heappop(heap)
            else:
                heapreplace(heap, self.entry(node))
            parent.head = heap[0][-1].head if heap else None
            node, parent = parent, parent.parent

    def reorder(self, leaf: Node) -> None:
        """Put a tenant and its ancestors back in their place after what they hold has changed."""
        node = leaf
        while node.parent is not None:
            parent = node.parent
            for index, entry in enumerate(parent.heap):
                if entry[-1] is node:
                    parent.heap[index] = self.entry(node)
                    heapify(parent.heap)
                    parent.head = parent.heap[0][-1].head
                    break
            node = parent


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
