"""Calls that ask what a reserve would be told, and start nothing."""

from __future__ import annotations

from gpucredits.client.call import Call, Number
from gpucredits.client.reservations import reserve
from gpucredits.wire.admission import AdmissionAnswer
from gpucredits.wire.reservation import ExhaustionName


def explain(  # noqa: PLR0913  # one argument for each field of the request
    account: str,
    *,
    job_id: str,
    gpu_type: str,
    gpu_count: int | None = None,
    region: str | None = None,
    node: str | None = None,
    window_seconds: int | None = None,
    escrow_windows: int | None = None,
    max_amount: Number | None = None,
    payer: str | None = None,
    exhaustion: ExhaustionName | None = None,
    grace_seconds: int | None = None,
    overdraft: Number | None = None,
) -> Call[AdmissionAnswer]:
    """Ask whether ``reserve`` with these arguments would be admitted now, and what each gate says.

    It takes the road of the real thing and leaves no trace.
    """
    asked = reserve(
        account,
        job_id=job_id,
        gpu_type=gpu_type,
        gpu_count=gpu_count,
        region=region,
        node=node,
        window_seconds=window_seconds,
        escrow_windows=escrow_windows,
        max_amount=max_amount,
        payer=payer,
        exhaustion=exhaustion,
        grace_seconds=grace_seconds,
        overdraft=overdraft,
    )
    return Call(method="POST", path="/v1/admissions:check", answer=AdmissionAnswer, body=asked.body)
