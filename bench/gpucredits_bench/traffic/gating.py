"""All gates on: the limits that every org of the gated contestant has, in each of its three scopes.

Owns: which limits there are. They are so wide that no beat meets one, because what is measured is
what looking at them costs, and a beat that is refused is another beat.
"""

from __future__ import annotations

from gpucredits_bench.traffic.exchange import Line
from gpucredits_bench.workload import org_path, scopes

PLENTY = 1_000_000_000  # credits, GPUs or jobs: never reached here
QUOTAS = [
    {"dimension": "concurrent_gpus", "limit": str(PLENTY)},
    {"dimension": "concurrent_jobs", "limit": str(PLENTY)},
    {
        "dimension": "credits_per_window",
        "limit": str(PLENTY),
        "calendar": "day",
        "zone": "Europe/Berlin",
    },
    {"dimension": "credits_per_window", "limit": str(PLENTY), "rolling_hours": 168},
]
RATE_LIMIT = {"capacity": str(PLENTY), "refill_per_hour": str(PLENTY)}
BUDGET = {
    "name": "bench",
    "allowance": str(PLENTY // 10),
    "calendar": "month",
    "zone": "Europe/Berlin",
    "warn_percent": [50, 80, 100],
}
LIMITS_OF_ORG = 3 * (len(QUOTAS) + 1) + 1


def set_gates(line: Line, org: int) -> None:
    """Quotas and a rate limit on the org, its project and its person, and a budget on the payer."""
    for scope in scopes(org):
        path, name = f"/v1/accounts/{scope}", scope.replace("/", "-")
        line.call(f"{path}/quotas", {"quotas": QUOTAS}, key=f"quotas-{name}", method="PUT")
        line.call(f"{path}/rate-limit", RATE_LIMIT, key=f"rate-{name}", method="PUT")
    payer = org_path(org)
    line.call(f"/v1/accounts/{payer}/budgets", BUDGET, key=f"budget-{payer}")
