"""Handlers of explanations: what a reserve would be told, and nothing is started."""

from __future__ import annotations

from http import HTTPStatus

from gpucredits.api import turns
from gpucredits.api.call import Call, NoQuery, Route
from gpucredits.api.errors import RefusedError, status_of
from gpucredits.api.overdue import name_statement
from gpucredits.api.reasons import NO_ACCOUNT
from gpucredits.api.scope import org_number, visible
from gpucredits.api.submit import rehearse
from gpucredits.core.command import Explain
from gpucredits.core.outcome import Explained
from gpucredits.core.reasons import Kind, Refused, invariant, kind_of
from gpucredits.service.access import Permission
from gpucredits.service.rehearsing import as_decided
from gpucredits.wire.admission import AdmissionAnswer, explained_to_wire, refused_to_wire
from gpucredits.wire.reservation import ReserveRequest, reserve_from_wire


async def check_admission(call: Call[ReserveRequest, NoQuery]) -> AdmissionAnswer:
    """Whether a request would be admitted now, from which grants, and what each gate says."""
    account = visible(call, call.body.account)
    org_id = await org_number(call, account)
    turns.permitted(call, call.body)
    command = reserve_from_wire(call.body, call.principal.scope)
    if turns.needs_turn(call, call.body):
        wish = turns.wish_of(call, call.body, command)
        command = await as_decided(call.services, org_id, wish)
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
    return explained_to_wire(org_id, outcome, gpu_count=command.gpu_count, status=int(status))


ROUTES = [
    Route(
        method="POST",
        path="/v1/admissions:check",
        summary="Whether a job would be admitted now, and what each gate says",
        handler=check_admission,
        permission=Permission.READ,
        body=ReserveRequest,
        answer=AdmissionAnswer,
        reasons=NO_ACCOUNT,
        is_question=True,
        tag="reservations",
    ),
]
