"""The engine with tiny blocks, so that short histories split, checkpoint, rewind and converge."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gpucredits import ArgumentValueError
from gpucredits.library.timeline import Shortage, Timeline, engine, future, log, pool, revision
from oracle.slow_history import SlowCharge, SlowGrant, SlowHistory, SlowRefund

times = st.integers(0, 60)
names = st.sampled_from([None, *"abcdefghijkl"])


@pytest.fixture(autouse=True, scope="module")
def tiny_blocks() -> Any:
    """Make every threshold of the engine small enough for a short history to cross it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "BLOCK", 4)
        patch.setattr(pool, "STALE_MAX", 2)
        patch.setattr(future, "WALK_MAX", 2)
        patch.setattr(revision, "NEAR_BLOCKS", 0)
        patch.setattr(engine, "REBUILD_SHARE", engine.REBUILD_SHARE)
        yield


class EngineMachine(RuleBasedStateMachine):
    """Balance, windows and the first shortfall equal a full replay, under either policy."""

    @initialize(allows_debt=st.booleans(), rebuild_share=st.sampled_from([0, 8, 10**6]))
    def start(self, allows_debt: Any, rebuild_share: Any) -> None:
        engine.REBUILD_SHARE = rebuild_share
        self.timeline = Timeline(shortage=Shortage.DEBT if allows_debt else Shortage.REFUSE)
        self.model = SlowHistory(allows_debt=allows_debt)
        self.now = 0

    @rule(amount=st.integers(0, 6), time=times, length=st.integers(0, 40), count=st.integers(1, 5))
    def add(self, amount: int, time: int, length: int, count: Any) -> None:
        for _ in range(count):
            self.timeline.add("g", amount, time, time + length)
            self.model.arrivals.append(SlowGrant("g", amount, time, time + length))

    @rule(name=names, amount=st.integers(0, 8), time=times)
    def charge(self, name: str | None, amount: int, time: int) -> None:
        if name is not None and (
            self.model.refundable(name) is not None or self.model.refunded(name) > amount
        ):
            with pytest.raises(ArgumentValueError):
                self.timeline.charge(name, amount, time)
            return
        self.timeline.charge(name, amount, time)
        self.model.arrivals.append(SlowCharge(name, amount, time))

    @rule(amount=st.integers(0, 6), steps=st.lists(st.integers(0, 2), min_size=1, max_size=9))
    def run_on_at_the_head(self, amount: int, steps: Any) -> None:
        for step in steps:
            self.now += step
            self.add(amount, self.now, 7 * step, 1)
            self.charge(None, amount // 2, self.now)

    @rule(name=st.sampled_from("abcdefghijkl"), amount=st.integers(0, 4), time=times)
    def refund(self, name: str, amount: int, time: int) -> None:
        left = self.model.refundable(name)
        if left is not None and amount > left:
            with pytest.raises(ArgumentValueError):
                self.timeline.refund(name, amount, time)
            return
        self.timeline.refund(name, amount, time)
        self.model.arrivals.append(SlowRefund(name, amount, time))

    @rule(asked=st.lists(st.integers(-1, 120), min_size=1, max_size=6))
    def ask(self, asked: Any) -> None:
        for time in asked:
            state = self.model.replay(time)
            balance = len(state.tokens) - state.debt
            assert self.timeline.state(time) == (balance, state.windows)
            assert self.timeline.first_shortfall(time) == state.first_unfunded

    @invariant()
    def checkpoints_stay_small(self) -> None:
        if hasattr(self, "timeline"):
            assert self.timeline.checkpoint_cells <= len(self.timeline._log)


EngineMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestEngine = EngineMachine.TestCase
