"""Calls that ask what a reserve would be told, and start nothing."""

from __future__ import annotations

from typing import Unpack

from gpucredits.client.call import Call, body_of
from gpucredits.client.reservations import ReserveFields
from gpucredits.wire.admission import AdmissionAnswer
from gpucredits.wire.reservation import ReserveRequest


def explain(account: str, **fields: Unpack[ReserveFields]) -> Call[AdmissionAnswer]:
    """Ask whether ``reserve`` with these arguments would be admitted now, and what each gate says.

    It takes the road of the real thing and leaves no trace.
    """
    body = body_of(ReserveRequest, account=account, **fields)
    return Call(method="POST", path="/v1/admissions:check", answer=AdmissionAnswer, body=body)
