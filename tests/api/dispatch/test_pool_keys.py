"""Keys of reserves into a pool: what is remembered under them, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from support.scenes.pools import PoolScene
from support.servers.http import Caller


@pytest.fixture
def pool(admin: Caller, gpu_type: str) -> PoolScene:
    """Eight GPUs that take turns."""
    return PoolScene(admin, gpu_type)


@pytest.mark.parametrize("batch", ["", "plain", "atomic"])
def test_to_be_asked_to_slow_down_is_no_answer_in_a_pool_either(
    pool: PoolScene, batch: str
) -> None:
    """A 429 is not remembered: the same key is let in once there are tokens; a 402 is."""
    org = pool.org()
    limit = f"/v1/accounts/{org}/rate-limit"
    too_slow = {"capacity": "1", "refill_per_hour": "0"}
    assert pool.admin.call("PUT", limit, too_slow).status_code == 200
    body = {"account": org, "job_id": "j", "gpu_type": pool.gpu_type, "gpu_count": 2}

    def ask(name: str, **more: Any) -> tuple[int, str]:
        """One reserve, alone or in a batch."""
        if not batch:
            answer = pool.admin.post("/v1/reservations", body | more, key=f"{name}-{org}")
            return answer.status_code, answer.json().get("reason", "")
        items = {"items": [body | more], "atomic": batch == "atomic"}
        answer = pool.admin.post("/v1/reservations:batch", items, key=f"{name}-{org}")
        if answer.status_code != 200:
            return answer.status_code, answer.json()["reason"]
        [result] = answer.json()["results"]
        return result["status"], (result.get("problem") or {}).get("reason", "")

    assert ask("slow") == (429, "rate_limited")
    assert ask("slow") == (429, "rate_limited")
    broke = ask("broke", account=pool.org("0.1"))
    assert broke == (402, "insufficient_credits")
    assert pool.admin.call("DELETE", limit).status_code == 200
    assert ask("slow") == (201, "")
    assert ask("slow") == (201, "")
    assert pool.held() == 2
