"""Short words for what tests do to pools over HTTP."""

from __future__ import annotations

from typing import Any

import httpx

from support.servers.http import Caller, fresh_name
from support.waiting import until

QUICK_POLICY = {"min_runtime_seconds": 0, "grace_seconds": 30}


class PoolScene:
    """A pool of its own type of GPU, which costs a hundredth of a credit a second."""

    def __init__(self, admin: Caller, gpu_type: str, *, capacity: int | None = 8) -> None:
        self.admin = admin
        self.gpu_type = gpu_type
        self.place = f"/v1/pools/{gpu_type}/default"
        self.set(capacity)

    def set(self, capacity: int | None, **policy: Any) -> Any:
        """Set the pool."""
        body = {"capacity": capacity, "policy": QUICK_POLICY | policy}
        answer = self.admin.call("PUT", self.place, body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def weigh(self, **weights: int) -> None:
        """Set the weights of orgs."""
        rows = [{"account": path, "weight": weight} for path, weight in weights.items()]
        answer = self.admin.call("PUT", f"{self.place}/weights", {"weights": rows})
        assert answer.status_code == 200, answer.text

    def org(self, credits_given: str | None = "1000") -> str:
        """A fresh org with credits."""
        name = fresh_name("org")
        self.admin.made("/v1/accounts", {"path": name})
        if credits_given:
            self.admin.made("/v1/credits/issue", {"account": name, "amount": credits_given})
        return name

    def ask(self, account: str, gpus: int, **more: Any) -> httpx.Response:
        """Reserve, with or without waiting; ``by`` and ``key`` say who asks and under which key."""
        by: Caller = more.pop("by", self.admin)
        key = more.pop("key", None)
        body = {
            "account": account,
            "job_id": more.pop("job_id", fresh_name("job")),
            "gpu_type": self.gpu_type,
            "gpu_count": gpus,
            **more,
        }
        return by.post("/v1/reservations", body, key=key)

    def take(self, account: str, gpus: int, **more: Any) -> str:
        """Reserve what must be admitted; the reservation's id."""
        answer = self.ask(account, gpus, **more)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["reservation_id"])

    def wait(self, account: str, gpus: int, **more: Any) -> Any:
        """Reserve with patience; the request once somebody has looked at it."""
        answer = self.ask(account, gpus, wait=True, **more)
        assert answer.status_code == 202, answer.text
        queue_id = answer.json()["queue_id"]

        def seen() -> Any:
            shown = self.state(queue_id)
            return (
                shown
                if shown["state"] != "waiting" or shown["waits_for"] or shown["reason"]
                else None
            )

        return until(seen)

    def state(self, queue_id: str) -> Any:
        """A request as it stands."""
        return self.admin.read(f"/v1/queue/{queue_id}")

    def until_state(self, queue_id: str, state: str) -> Any:
        """A request once it is in a state."""
        return self.until_told(queue_id, state=state)

    def until_told(self, queue_id: str, **facts: Any) -> Any:
        """A request once it is told so."""

        def told() -> Any:
            shown = self.state(queue_id)
            return shown if all(shown[name] == value for name, value in facts.items()) else None

        return until(told)

    def settle(self, reservation_id: str) -> None:
        """End a job."""
        self.admin.made(f"/v1/reservations/{reservation_id}:settle")

    def held(self) -> int:
        """GPUs that are held now."""
        return int(self.admin.read(f"{self.place}/shares")["held"])
