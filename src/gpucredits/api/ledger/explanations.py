"""Handlers of explanations: what a reserve would be told, and nothing is started."""

from __future__ import annotations

from http import HTTPStatus

from gpucredits.api.dispatch import pool_admission
from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import RefusedError, status_of
from gpucredits.api.http.overdue import name_statement
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import org_number, rehearse, visible
from gpucredits.api.ledger import reservations
from gpucredits.core.book import invariant
from gpucredits.core.command import Explain
from gpucredits.core.outcome import Explained
from gpucredits.core.reasons import Kind, Refused, kind_of
from gpucredits.service.access.permissions import Permission
from gpucredits.service.dispatch.dry_runs import as_decided
from gpucredits.wire.ledger.reservation import ReserveRequest, reserve_from_wire
from gpucredits.wire.limits.admission import AdmissionAnswer, explained_to_wire, refused_to_wire

route = Routes("reservations")


@route(
    "POST /v1/admissions:check",
    Permission.READ,
    reasons=NO_ACCOUNT,
    is_question=True,
    client="explain(account, **ReserveFields)",
)
async def check_admission(call: ApiRequest[ReserveRequest, NoQuery]) -> AdmissionAnswer:
    """Ask whether a reserve would be admitted now, and what each gate says.

    The check takes the same steps as a reserve and stores nothing.
    """
    account = visible(call, call.body.account)
    org_id = await org_number(call, account)
    reservations.permitted(call, call.body)
    command = reserve_from_wire(call.body, call.principal.scope)
    if reservations.needs_turn(call, call.body):
        options = pool_admission.options_of(call, call.body, command)
        command = await as_decided(call.services, org_id, options)
    outcome = await rehearse(call, org_id, Explain(reserve=command))
    if isinstance(outcome, Refused):
        if kind_of(outcome.reason) is Kind.NOT_FOUND:
            raise RefusedError(outcome)
        outcome = await name_statement(call, outcome, {})
        return refused_to_wire(account, outcome, status=int(status_of(outcome.reason)))
    invariant(isinstance(outcome, Explained), "an explanation explains")
    assert isinstance(outcome, Explained)  # for the type checker
    status = HTTPStatus.CREATED
    if outcome.refusal is not None:
        status = status_of(outcome.refusal.reason)
    return explained_to_wire(org_id, outcome, milli_gpus=command.milli_gpus, status=int(status))
