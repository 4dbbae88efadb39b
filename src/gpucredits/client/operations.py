"""Every method of the clients, named once for both.

Owns: turning a function that describes a call into a method that makes it: of ``Client`` it
returns the answer, of ``AsyncClient`` something to await. Lists are iterators over all pages.
Must not: know how calls are sent.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from gpucredits.client import accounts as account_calls
from gpucredits.client import admissions as admission_calls
from gpucredits.client import anomalies as anomaly_calls
from gpucredits.client import boosts as boost_calls
from gpucredits.client import budgets as budget_calls
from gpucredits.client import credit as credit_calls
from gpucredits.client import entries as entry_calls
from gpucredits.client import keys as key_calls
from gpucredits.client import limits as limit_calls
from gpucredits.client import pools as pool_calls
from gpucredits.client import prices as price_calls
from gpucredits.client import queue as queue_calls
from gpucredits.client import quotas as quota_calls
from gpucredits.client import request_limits as request_limit_calls
from gpucredits.client import requests as request_calls
from gpucredits.client import reservations as reservation_calls
from gpucredits.client import statements as statement_calls
from gpucredits.client import system as system_calls
from gpucredits.client import usage as usage_calls
from gpucredits.client.call import Call
from gpucredits.client.signatures import Function, answer_of, item_of, present, signature_of

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Item = TypeVar("Item")


class Sender(ABC):
    """A client whose calls return."""

    @abstractmethod
    def send(self, call: Call[Answer]) -> Answer:
        """Make a call."""


class AsyncSender(ABC):
    """A client whose calls are awaited."""

    @abstractmethod
    async def send(self, call: Call[Answer]) -> Answer:
        """Make a call."""


class Paged(Protocol):
    """An answer that may have another after it."""

    next_cursor: str | None


Page = TypeVar("Page", bound=Paged)


class Operation(Generic[Given, Answer]):
    """A method that makes one call."""

    def __init__(self, build: Callable[Given, Call[Answer]]) -> None:
        self._build = build
        self._name = build.__name__
        self.__doc__ = build.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(
        self, client: None, owner: type[Sender]
    ) -> Callable[Concatenate[Sender, Given], Answer]: ...
    @overload
    def __get__(
        self, client: None, owner: type[AsyncSender]
    ) -> Callable[Concatenate[AsyncSender, Given], Coroutine[Any, Any, Answer]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Sender, owner: type) -> Callable[Given, Answer]: ...
    @overload
    def __get__(
        self, client: AsyncSender, owner: type
    ) -> Callable[Given, Coroutine[Any, Any, Answer]]: ...
    def __get__(self, client: object, owner: type) -> Any:
        """The method of the class, or bound to a client."""
        if not issubclass(owner, Sender | AsyncSender):
            return self
        method = self._method if issubclass(owner, Sender) else self._async_method
        return method if client is None else MethodType(method, client)

    @functools.cached_property
    def _method(self) -> Callable[Concatenate[Sender, Given], Answer]:
        build = self._build

        def call(self: Sender, /, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
            return self.send(build(*args, **kwargs))

        return self._presented(call, "Client")

    @functools.cached_property
    def _async_method(
        self,
    ) -> Callable[Concatenate[AsyncSender, Given], Coroutine[Any, Any, Answer]]:
        build = self._build

        async def call(self: AsyncSender, /, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
            return await self.send(build(*args, **kwargs))

        return self._presented(call, "AsyncClient")

    def _presented(self, method: Function, owner: str) -> Function:
        signature = signature_of(self._build, answer_of(self._build))
        return present(method, name=self._name, owner=owner, doc=self.__doc__, signature=signature)


class Listing(Generic[Given, Page, Item]):
    """A method that iterates over the items of all pages, fetching each when it is needed."""

    def __init__(
        self, build: Callable[Given, Call[Page]], items: Callable[[Page], Sequence[Item]]
    ) -> None:
        self._build = build
        self._items = items
        self._name = build.__name__
        self.__doc__ = (
            f"Iterate over the items of all pages; ``{build.__name__}`` gives one page.\n\n"
            f"The pages: {build.__doc__}"
        )

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(
        self, client: None, owner: type[Sender]
    ) -> Callable[Concatenate[Sender, Given], Iterator[Item]]: ...
    @overload
    def __get__(
        self, client: None, owner: type[AsyncSender]
    ) -> Callable[Concatenate[AsyncSender, Given], AsyncIterator[Item]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Sender, owner: type) -> Callable[Given, Iterator[Item]]: ...
    @overload
    def __get__(self, client: AsyncSender, owner: type) -> Callable[Given, AsyncIterator[Item]]: ...
    def __get__(self, client: object, owner: type) -> Any:
        """The method of the class, or bound to a client."""
        if not issubclass(owner, Sender | AsyncSender):
            return self
        method = self._method if issubclass(owner, Sender) else self._async_method
        return method if client is None else MethodType(method, client)

    @functools.cached_property
    def _method(self) -> Callable[Concatenate[Sender, Given], Iterator[Item]]:
        build, iterate = self._build, self._iterate

        def items(self: Sender, /, *args: Given.args, **kwargs: Given.kwargs) -> Iterator[Item]:
            return iterate(self, build(*args, **kwargs))

        return self._presented(items, "Client", Iterator)

    @functools.cached_property
    def _async_method(self) -> Callable[Concatenate[AsyncSender, Given], AsyncIterator[Item]]:
        build, iterate = self._build, self._iterate_async

        def items(
            self: AsyncSender, /, *args: Given.args, **kwargs: Given.kwargs
        ) -> AsyncIterator[Item]:
            return iterate(self, build(*args, **kwargs))

        return self._presented(items, "AsyncClient", AsyncIterator)

    def _presented(self, method: Function, owner: str, kind: Any) -> Function:
        signature = signature_of(self._build, kind[item_of(self._build, self._items)])
        return present(method, name=self._name, owner=owner, doc=self.__doc__, signature=signature)

    def _iterate(self, client: Sender, call: Call[Page] | None) -> Iterator[Item]:
        while call is not None:
            page = client.send(call)
            yield from self._items(page)
            call = call.at(page.next_cursor) if page.next_cursor else None

    async def _iterate_async(
        self, client: AsyncSender, call: Call[Page] | None
    ) -> AsyncIterator[Item]:
        while call is not None:
            page = await client.send(call)
            for item in self._items(page):
                yield item
            call = call.at(page.next_cursor) if page.next_cursor else None


class Operations:
    """What can be asked of a server. Methods named after a thing in the plural follow all pages."""

    create_account = Operation(account_calls.create_account)
    update_account = Operation(account_calls.update_account)
    suspend = Operation(account_calls.suspend)
    resume = Operation(account_calls.resume)
    account = Operation(account_calls.account)
    account_page = Operation(account_calls.account_page)
    accounts = Listing(account_calls.account_page, lambda page: page.accounts)
    tree = Operation(account_calls.tree)
    balance = Operation(account_calls.balance)

    issue = Operation(credit_calls.issue)
    issue_all = Operation(credit_calls.issue_all)
    grant = Operation(credit_calls.grant)
    grant_page = Operation(credit_calls.grant_page)
    grants = Listing(credit_calls.grant_page, lambda page: page.grants)
    create_topup = Operation(credit_calls.create_topup)
    topup = Operation(credit_calls.topup)
    topup_page = Operation(credit_calls.topup_page)
    topups = Listing(credit_calls.topup_page, lambda page: page.topups)
    confirm_topup = Operation(credit_calls.confirm_topup)
    fail_topup = Operation(credit_calls.fail_topup)
    reverse_topup = Operation(credit_calls.reverse_topup)
    transfer = Operation(credit_calls.transfer)
    transfer_page = Operation(credit_calls.transfer_page)
    transfers = Listing(credit_calls.transfer_page, lambda page: page.transfers)

    reserve = Operation(reservation_calls.reserve)
    reserve_all = Operation(reservation_calls.reserve_all)
    reservation = Operation(reservation_calls.reservation)
    reservation_page = Operation(reservation_calls.reservation_page)
    reservations = Listing(reservation_calls.reservation_page, lambda page: page.reservations)
    heartbeats = Operation(reservation_calls.heartbeats)
    extend = Operation(reservation_calls.extend)
    settle = Operation(reservation_calls.settle)
    cancel = Operation(reservation_calls.cancel)
    refund = Operation(reservation_calls.refund)
    adjust = Operation(reservation_calls.adjust)

    enqueue = Operation(queue_calls.enqueue)
    queued = Operation(queue_calls.queued)
    queue_page = Operation(queue_calls.queue_page)
    queue = Listing(queue_calls.queue_page, lambda page: page.queue)
    cancel_queued = Operation(queue_calls.cancel_queued)
    pools = Operation(pool_calls.pools)
    pool = Operation(pool_calls.pool)
    set_pool = Operation(pool_calls.set_pool)
    remove_pool = Operation(pool_calls.remove_pool)
    weights = Operation(pool_calls.weights)
    set_weights = Operation(pool_calls.set_weights)
    change_weights = Operation(pool_calls.change_weights)
    shares = Operation(pool_calls.shares)
    snapshot = Operation(pool_calls.snapshot)

    set_price = Operation(price_calls.set_price)
    end_price = Operation(price_calls.end_price)
    price_page = Operation(price_calls.price_page)
    prices = Listing(price_calls.price_page, lambda page: page.prices)

    entry_page = Operation(entry_calls.entry_page)
    entries = Listing(entry_calls.entry_page, lambda page: page.entries)

    create_key = Operation(key_calls.create_key)
    whoami = Operation(key_calls.whoami)
    revoke_key = Operation(key_calls.revoke_key)
    key_page = Operation(key_calls.key_page)
    keys = Listing(key_calls.key_page, lambda page: page.keys)
    key_limit = Operation(request_limit_calls.key_limit)
    set_key_limit = Operation(request_limit_calls.set_key_limit)
    end_key_limit = Operation(request_limit_calls.end_key_limit)
    org_request_limit = Operation(request_limit_calls.org_request_limit)
    set_org_request_limit = Operation(request_limit_calls.set_org_request_limit)
    end_org_request_limit = Operation(request_limit_calls.end_org_request_limit)
    audit_page = Operation(key_calls.audit_page)
    audit = Listing(key_calls.audit_page, lambda page: page.audit)

    report_usage = Operation(usage_calls.report_usage)
    usage_page = Operation(usage_calls.usage_page)
    paid_groups = Listing(usage_calls.usage_page, lambda page: page.paid)
    used_leases = Listing(usage_calls.usage_page, lambda page: page.leases)

    explain = Operation(admission_calls.explain)
    limits = Operation(limit_calls.limits)
    rate_limit = Operation(limit_calls.rate_limit)
    set_rate_limit = Operation(limit_calls.set_rate_limit)
    end_rate_limit = Operation(limit_calls.end_rate_limit)
    quotas = Operation(quota_calls.quotas)
    set_quota = Operation(quota_calls.set_quota)
    replace_quotas = Operation(quota_calls.replace_quotas)
    end_quota = Operation(quota_calls.end_quota)
    boosts = Operation(boost_calls.boosts)
    add_boost = Operation(boost_calls.add_boost)
    end_boost = Operation(boost_calls.end_boost)
    budgets = Operation(budget_calls.budgets)
    set_budget = Operation(budget_calls.set_budget)
    replace_budgets = Operation(budget_calls.replace_budgets)
    end_budget = Operation(budget_calls.end_budget)
    period_page = Operation(budget_calls.period_page)
    periods = Listing(budget_calls.period_page, lambda page: page.periods)

    ask = Operation(request_calls.ask)
    request = Operation(request_calls.request)
    request_page = Operation(request_calls.request_page)
    requests = Listing(request_calls.request_page, lambda page: page.requests)
    approve_request = Operation(request_calls.approve_request)
    decline_request = Operation(request_calls.decline_request)
    cancel_request = Operation(request_calls.cancel_request)

    statement = Operation(statement_calls.statement)
    statement_page = Operation(statement_calls.statement_page)
    statements = Listing(statement_calls.statement_page, lambda page: page.statements)
    pay_statement = Operation(statement_calls.pay_statement)
    anomaly_page = Operation(anomaly_calls.anomaly_page)
    anomalies = Listing(anomaly_calls.anomaly_page, lambda page: page.anomalies)
    anomaly_terms = Operation(anomaly_calls.anomaly_terms)
    set_anomaly_terms = Operation(anomaly_calls.set_anomaly_terms)

    health = Operation(system_calls.health)
    clock = Operation(system_calls.clock)
    org_clock_page = Operation(system_calls.org_clock_page)
    org_clocks = Listing(system_calls.org_clock_page, lambda page: page.orgs)
    repair_clock = Operation(system_calls.repair_clock)
    advance_clock = Operation(system_calls.advance_clock)
