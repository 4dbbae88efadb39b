"""One of something is spoken of as one."""

from __future__ import annotations

import pytest

from gpucredits.core.fairshare.decisions import WaitDecision, WaitReason, sentence
from gpucredits.core.gate import Gate, GateReport, GateUnit
from gpucredits.core.money import be, count, count_credits, count_of
from gpucredits.core.quota import Dimension, Quota
from gpucredits.core.risk import AnomalyTerms, Standing, check_spend
from gpucredits.core.rules.credit.funding import overdraft_too_large
from gpucredits.core.rules.limits.gates import quota_name
from support.books.ledger import CREDIT, START, Ledger


def report(gate: Gate, unit: GateUnit, limit: int, current: int, requested: int) -> str:
    """What a gate says of a request."""
    passes = current + requested <= limit
    each = {GateUnit.CREDITS: CREDIT, GateUnit.GPUS: 1_000}.get(unit, 1)
    numbers = (limit * each, current * each, requested * each)
    return GateReport(gate, "org", "acme", "cap", unit, *numbers, passes).sentence


SENTENCES = {
    "acme has 1 credit available, and 2 are needed.": (Gate.BUDGET, GateUnit.CREDITS, 1, 0, 2),
    "acme has 0 credits available, and 1 is needed.": (Gate.BUDGET, GateUnit.CREDITS, 0, 0, 1),
    "acme has taken 1 of 1 GPU, its limit of cap, and 1 more is": (
        Gate.QUOTA,
        GateUnit.GPUS,
        1,
        1,
        1,
    ),
    "acme has taken 2 of 2 jobs, its limit of cap, and 1 more is": (
        Gate.QUOTA,
        GateUnit.JOBS,
        2,
        2,
        1,
    ),
    "acme is spending too fast: 1 of the 2 credits that its cap lets it draw at once is there, "
    "and 2 are needed.": (Gate.RATE_LIMIT, GateUnit.CREDITS, 2, 1, 2),
    "acme is spending too fast: 0 of the 1 credit that its cap lets it draw at once are there, "
    "and 1 is needed.": (Gate.RATE_LIMIT, GateUnit.CREDITS, 1, 1, 1),
    "acme passes its cap: 0 of 1 GPU are taken": (Gate.QUOTA, GateUnit.GPUS, 1, 0, 1),
    "acme passes its cap: 1 of 4 GPUs is taken": (Gate.QUOTA, GateUnit.GPUS, 4, 1, 1),
}


@pytest.mark.parametrize(("words", "given"), SENTENCES.items())
def test_gates_speak_of_one(words: str, given: tuple[Gate, GateUnit, int, int, int]) -> None:
    """What a gate says is right for one as for many."""
    assert report(*given).startswith(words)


def test_numbers_and_what_they_count() -> None:
    """Only 1 takes the singular; fractions and nothing do not."""
    assert [count(number, "credit") for number in (0, 1, "1", "1.5")] == [
        "0 credits",
        "1 credit",
        "1 credit",
        "1.5 credits",
    ]
    assert (count_of(1, "GPUs"), count_of(2, "GPUs")) == ("1 GPU", "2 GPUs")
    assert (count_credits(CREDIT), count_credits(CREDIT + 1)) == ("1 credit", "1.000001 credits")
    assert (be(1), be(0), be("1.5")) == ("is", "are", "are")


def test_judgements_speak_of_one() -> None:
    """An hour of one credit, and one that is overdue."""
    spent = check_spend([0, CREDIT], AnomalyTerms()).sentence
    assert spent.startswith("1 credit in this hour is within the threshold of")
    assert spent.endswith("over the last 1 hour.")
    assert Standing(CREDIT, START).sentence.startswith("1 credit is overdue since ")


def test_names_and_refusals_speak_of_one(ledger: Ledger) -> None:
    """A window of one hour, and an overdraft of one credit."""
    quota = Quota(1, 1, Dimension.CREDITS_PER_WINDOW, 5, rolling_hours=1)
    assert quota_name(quota) == "credits in 1 hour"
    account = ledger.account("acme")
    account.overdraft_limit = CREDIT
    refused = overdraft_too_large(account, 2 * CREDIT)
    assert "by at most 1 credit; 2 were asked for." in refused.message
    account.overdraft_limit = 0
    refused = overdraft_too_large(account, CREDIT)
    assert "by at most 0 credits; 1 was asked for." in refused.message


WAITS = {
    "the 1 GPU that is free is kept for que_1_1, which has waited long.": WaitReason.HELD_FOR_HEAD,
    "1 of the 2 members of its gang is here.": WaitReason.GANG_INCOMPLETE,
    "it needs 2 GPUs of the 1 that is free, but starting it now would delay que_1_1, which is "
    "before it.": WaitReason.WOULD_DELAY_HEAD,
}


@pytest.mark.parametrize(("words", "reason"), WAITS.items())
def test_reasons_to_wait_speak_of_one(words: str, reason: WaitReason) -> None:
    """One GPU is free, one member is here."""
    of_gang = reason is WaitReason.GANG_INCOMPLETE
    numbers = ("", 2, 1) if of_gang else ("gpu", 2_000, 1_000)
    assert sentence(WaitDecision("que_1_2", "acme", 0, reason, *numbers, "que_1_1")) == words
