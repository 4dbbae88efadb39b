"""GPUCredit against the slow model, with arrivals and questions in any order."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gpucredits import GPUCredit
from oracle.slow_history import SlowCharge, SlowGrant, SlowHistory

times = st.integers(-5, 40)
amounts = st.integers(0, 9)


class GPUCreditMachine(RuleBasedStateMachine):
    """Every answer equals a replay of everything that has arrived."""

    @initialize()
    def start(self) -> None:
        self.credit = GPUCredit()
        self.model = SlowHistory(allows_debt=True)
        self.now = 0

    @rule(amount=amounts, time=times, length=st.integers(0, 30))
    def add_anywhere(self, amount: int, time: int, length: int) -> None:
        self.credit.add_credit("c", amount, time, length)
        self.model.arrivals.append(SlowGrant("c", amount, time, time + length + 1))

    @rule(amount=amounts, time=times)
    def subtract_anywhere(self, amount: int, time: int) -> None:
        self.credit.subtract(amount, time)
        self.model.arrivals.append(SlowCharge(None, amount, time))

    @rule(amount=amounts, step=st.integers(0, 3), length=st.integers(0, 30))
    def add_at_the_head(self, amount: int, step: int, length: int) -> None:
        self.now += step
        self.add_anywhere(amount, self.now, length)

    @rule(amount=amounts, step=st.integers(0, 3))
    def subtract_at_the_head(self, amount: int, step: int) -> None:
        self.now += step
        self.subtract_anywhere(amount, self.now)

    @rule(time=st.integers(-6, 80))
    def ask(self, time: int) -> None:
        state = self.model.replay(time)
        balance = len(state.tokens) - state.debt
        expected = balance if state.windows and balance >= 0 else None
        assert self.credit.get_balance(time) == expected

    @invariant()
    def stays_usable(self) -> None:
        assert len(self.credit._timeline) == len(self.model.arrivals)


GPUCreditMachine.TestCase.settings = settings(
    max_examples=80, stateful_step_count=60, deadline=None
)
TestGPUCredit = GPUCreditMachine.TestCase
