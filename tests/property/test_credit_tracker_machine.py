"""CreditTracker and TenantCredits against the slow model, dumps and refunds included."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from gpucredits import ArgumentValueError, CreditTracker, IrreconcilableError, TenantCredits
from oracle.slow_history import SlowCharge, SlowGrant, SlowHistory, SlowRefund

times = st.integers(-5, 40)
amounts = st.integers(0, 9)
charge_names = st.sampled_from([None, *"abcdefgh"])


class Pair:
    """A tracker and its model, moved together."""

    def __init__(self, tracker: Any) -> None:
        self.tracker = tracker
        self.model = SlowHistory(allows_debt=False)

    def add(self, amount: int, start: int, length: int) -> None:
        self.tracker.add("g", amount, start, start + length)
        self.model.arrivals.append(SlowGrant("g", amount, start, start + length))

    def charge(self, name: str, amount: int, time: int) -> None:
        if name is not None:
            left = self.model.refundable(name)
            if left is not None or self.model.refunded(name) > amount:
                self.assert_unchanged_by(self.tracker.charge, amount, time, name)
                return
        state = self.model.replay(time)
        if state.first_unfunded is not None:
            with pytest.raises(IrreconcilableError):
                self.tracker.charge(amount, time, name)
            return
        answer = self.tracker.charge(amount, time, name)
        if len(state.tokens) < amount:
            assert answer is None
            return
        self.model.arrivals.append(SlowCharge(name, amount, time))
        assert answer == len(self.model.replay(time).tokens)

    def refund(self, name: str, amount: int, time: int) -> None:
        left = self.model.refundable(name)
        if left is not None and amount > left:
            self.assert_unchanged_by(self.tracker.refund, name, amount, time)
            return
        self.tracker.refund(name, amount, time)
        self.model.arrivals.append(SlowRefund(name, amount, time))

    def assert_unchanged_by(self, call: Any, *arguments: Any) -> None:
        before = self.tracker.dump()
        with pytest.raises(ArgumentValueError):
            call(*arguments)
        assert self.tracker.dump() == before

    def ask(self, time: int) -> None:
        state = self.model.replay(time)
        if state.first_unfunded is None:
            assert self.tracker.get_balance(time) == len(state.tokens)
            return
        with pytest.raises(IrreconcilableError) as caught:
            self.tracker.get_balance(time)
        error = caught.value
        named = (error.charge_id, error.timestamp, error.amount, error.short_by)
        assert named == state.first_unfunded


class CreditTrackerMachine(RuleBasedStateMachine):
    """Every answer equals a replay of everything accepted, before and after a dump."""

    @initialize()
    def start(self) -> None:
        self.pair = Pair(CreditTracker())
        self.now = 0

    @rule(amount=amounts, time=times, length=st.integers(0, 30))
    def add_anywhere(self, amount: int, time: int, length: int) -> None:
        self.pair.add(amount, time, length)

    @rule(name=charge_names, amount=amounts, time=times)
    def charge_anywhere(self, name: str, amount: int, time: int) -> None:
        self.pair.charge(name, amount, time)

    @rule(amount=amounts, step=st.integers(0, 3), length=st.integers(0, 30))
    def add_at_the_head(self, amount: int, step: int, length: int) -> None:
        self.now += step
        self.pair.add(amount, self.now, length)

    @rule(name=charge_names, amount=amounts, step=st.integers(0, 3))
    def charge_at_the_head(self, name: str, amount: int, step: int) -> None:
        self.now += step
        self.pair.charge(name, amount, self.now)

    @rule(name=st.sampled_from("abcdefgh"), amount=st.integers(0, 5), time=times)
    def refund(self, name: str, amount: int, time: int) -> None:
        self.pair.refund(name, amount, time)

    @rule(time=st.integers(-6, 80))
    def ask(self, time: int) -> None:
        self.pair.ask(time)

    @rule()
    def go_through_a_dump(self) -> None:
        data = self.pair.tracker.dump()
        loaded = CreditTracker.load(data)
        assert loaded == self.pair.tracker
        assert loaded.dump() == data
        self.pair.tracker = loaded


class TenantsMachine(RuleBasedStateMachine):
    """Tenants never touch each other, and questions across them add up."""

    @initialize()
    def start(self) -> None:
        self.tenants = TenantCredits()
        self.pairs: dict[str, Any] = {}

    def pair(self, name: str) -> Any:
        pair = self.pairs.setdefault(name, Pair(None))
        pair.tracker = self.tenants.tenant(name)
        return pair

    @rule(tenant=st.sampled_from("xyz"), amount=amounts, time=times, length=st.integers(0, 30))
    def add(self, tenant: str, amount: int, time: int, length: int) -> None:
        self.pair(tenant).add(amount, time, length)

    @rule(tenant=st.sampled_from("xyz"), name=charge_names, amount=amounts, time=times)
    def charge(self, tenant: str, name: str, amount: int, time: int) -> None:
        self.pair(tenant).charge(name, amount, time)

    @rule(time=st.integers(-6, 80))
    def ask(self, time: int) -> None:
        states = {name: self.pairs[name].model.replay(time) for name in sorted(self.pairs)}
        broken = [name for name, state in states.items() if state.first_unfunded is not None]
        whole = {n: len(state.tokens) for n, state in states.items() if n not in broken}
        assert self.tenants.get_balances(time) == whole
        assert list(self.tenants.irreconcilable(time)) == broken
        if broken:
            with pytest.raises(IrreconcilableError) as caught:
                self.tenants.total(time)
            assert repr(broken[0]) in caught.value.__notes__[0]
        else:
            assert self.tenants.total(time) == sum(whole.values())

    @rule()
    def go_through_a_dump(self) -> None:
        data = self.tenants.dump()
        loaded = TenantCredits.load(data)
        assert loaded == self.tenants
        assert loaded.dump() == data
        self.tenants = loaded


for machine in (CreditTrackerMachine, TenantsMachine):
    machine.TestCase.settings = settings(max_examples=80, stateful_step_count=60, deadline=None)
TestCreditTracker = CreditTrackerMachine.TestCase
TestTenants = TenantsMachine.TestCase
