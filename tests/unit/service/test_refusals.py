"""Refusals for the audit log: the first at once, the others counted, and never without bound."""

from __future__ import annotations

from gpucredits.service.access.refusals import OTHERS, Refusals, RefusedAct


def refused(number: int = 0, action: str = "token.refuse") -> RefusedAct:
    """A refusal of a kind of its own."""
    return RefusedAct(action=action, reason="token_invalid", actor="key_1_1", resource=f"r{number}")


def counts(refusals: Refusals, now: float) -> list[tuple[str, int]]:
    """What is written now: resource and count of each row."""
    return [(note.resource, note.new["count"]) for _, note in refusals.due(now)]


def test_the_first_is_told_at_once_and_others_together() -> None:
    """One row, then one for all that came within ten minutes, then none."""
    refusals = Refusals(quiet_s=600)
    refusals.add(refused(), now=0, account="acme", facts={"node": "a", "runs_on": ""})
    assert refusals.has_news
    [(_, note)] = refusals.due(0)
    assert not refusals.has_news
    assert note.old == {"account": "acme"}
    assert note.new == {"reason": "token_invalid", "count": 1, "node": "a"}
    for _ in range(50):
        refusals.add(refused(), now=1)
    assert not refusals.has_news  # they are counted, and told in their time
    assert counts(refusals, 599) == []
    assert counts(refusals, 600) == [("r0", 50)]
    assert counts(refusals, 1_200) == []
    refusals.add(refused(), now=1_201)
    assert counts(refusals, 1_201) == [("r0", 1)]


def test_many_kinds_are_bounded() -> None:
    """A flood of kinds becomes as many rows as there may be, and one for the rest."""
    refusals = Refusals(kinds_max=10, quiet_s=600)
    for number in range(1_000):
        refusals.add(refused(number), now=0)
    rows = refusals.due(0)
    assert len(rows) == 11
    assert rows[-1][1].new == {"reason": OTHERS, "count": 990}
    for number in range(1_000):
        refusals.add(refused(number), now=1)
    assert counts(refusals, 599) == []
    assert sum(count for _, count in counts(refusals, 600)) == 1_000


def test_what_could_not_be_written_is_told_later() -> None:
    """With its count."""
    refusals = Refusals()
    refusals.add(refused(), now=0)
    [(kind, note)] = refusals.due(0)
    refusals.put_back(kind, note.new["count"])
    assert counts(refusals, 0) == [("r0", 1)]


def test_long_facts_are_cut() -> None:
    """Nothing that a caller chose is kept at any length."""
    refusals = Refusals()
    refusals.add(refused(), now=0, facts={"node": "x" * 10_000})
    [(_, note)] = refusals.due(0)
    assert len(note.new["node"]) == 200
