"""Limits set at random while jobs run: what is explained is what is then answered."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from support.servers.http import Caller, fresh_name

STEPS = 120
WINDOWS: list[dict[str, Any]] = [
    {"calendar": "day", "zone": "Asia/Kathmandu"},
    {"calendar": "week"},
    {"rolling_hours": 1},
    {"rolling_hours": 24},
]


class Fleet:
    """An org whose operators and users do things at random."""

    def __init__(self, admin: Caller, org: str, gpu_type: str, seed: int) -> None:
        self.admin = admin
        self.gpu_type = gpu_type
        self.chance = Random(seed)
        self.paths = [org, f"{org}/vision", f"{org}/vision/alice"]
        self.leases: dict[str, list[int]] = {}
        self.statuses: set[int] = set()
        self.opened = 0

    def set_quota(self, account: str) -> None:
        """A limit of any sort, for one type of GPU or for all."""
        dimension = self.chance.choice(["credits_per_job", "concurrent_gpus", "concurrent_jobs"])
        body: dict[str, Any] = {"dimension": dimension, "limit": self.chance.randint(1, 12)}
        if self.chance.random() < 0.4:
            body |= {"dimension": "credits_per_window", "limit": self.chance.randint(5, 40)}
            body |= self.chance.choice(WINDOWS)
        if self.chance.random() < 0.3:
            body["gpu_type"] = self.gpu_type
        self.admin.made(f"/v1/accounts/{account}/quotas", body)

    def change_a_limit(self, account: str) -> None:
        """A rate limit comes or goes, all quotas are replaced, or one is boosted."""
        base = f"/v1/accounts/{account}"
        refill = self.chance.choice([0, 60, 3_600])
        bucket = {"capacity": self.chance.randint(1, 20), "refill_per_hour": refill}
        quotas = self.admin.read(f"{base}/quotas")["quotas"]
        match self.chance.randint(1, 4):
            case 1:
                assert self.admin.call("PUT", f"{base}/rate-limit", bucket).status_code == 200
            case 2:
                self.admin.call("DELETE", f"{base}/rate-limit")
            case 3:
                few = {"quotas": [{"dimension": "concurrent_gpus", "limit": 8}]}
                assert self.admin.call("PUT", f"{base}/quotas", few).status_code == 200
            case _ if quotas:
                target = self.chance.choice(quotas)["quota_id"]
                ends = self.admin.instant(seconds=self.chance.randint(5, 500))
                boost = {"target_id": target, "amount": 2, "ends_at": ends}
                self.admin.made(f"{base}/boosts", boost)
            case _:
                pass

    def ask(self, account: str) -> None:
        """Explain a job, then ask for it: the same answer, by the same gates."""
        body = {
            "account": account,
            "job_id": self.chance.choice("xyz"),
            "node": fresh_name("n"),
            "gpu_type": self.gpu_type,
            "gpu_count": self.chance.randint(1, 4),
            "window_seconds": self.chance.choice([30, 120]),
            "exhaustion": self.chance.choice(["stop", "drain", "finish"]),
        }
        told = self.admin.made("/v1/admissions:check", body)
        answer = self.admin.post("/v1/reservations", body)
        got = answer.json()
        self.statuses.add(answer.status_code)
        if answer.status_code == 201:
            self.leases[got["reservation_id"]] = [0, 0]
            if told["admitted"]:
                assert (got["held"], got["payer"]) == (told["held"], told["payer"])
            else:
                self.opened += 1  # a lease or a window ended between the two, or a token came
            return
        again = self.admin.made("/v1/admissions:check", body)  # for what ended between the two
        seen = [answer.status_code, got["reason"], [fixed(gate) for gate in got["gates"]]]
        assert seen in [
            [each["status"], each["reason"], [fixed(gate) for gate in each["gates"]]]
            for each in (told, again)
        ]

    def beat(self) -> None:
        """Some time passes, and most of the jobs report that they used it."""
        seconds = self.chance.randint(1, 25)
        self.admin.advance(seconds)
        beats = []
        for lease, report in self.leases.items():
            if self.chance.random() < 0.8:
                report[0] += 1
                report[1] += seconds * 1_000
                beats.append({"reservation_id": lease, "seq": report[0], "used_ms": report[1]})
        for answer in self.admin.made("/v1/heartbeats", {"beats": beats})["results"]:
            assert answer["decision"] == "continue" or answer["reason"], answer
            if answer["decision"] == "stop":
                del self.leases[answer["reservation_id"]]

    def end(self) -> None:
        """A job ends."""
        for lease in list(self.leases)[:1]:
            self.admin.made(f"/v1/reservations/{lease}:settle")
            del self.leases[lease]


def fixed(gate: dict[str, Any]) -> dict[str, Any]:
    """A gate without what the refill of a bucket changes from one moment to the next."""
    moving = {"current", "sentence", "clears_at"} if gate["gate"] == "rate_limit" else set()
    return {name: value for name, value in gate.items() if name not in moving}


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_explained_is_what_is_answered(
    admin: Caller, org: str, gpu_type: str, seed: int
) -> None:
    """Whatever limits come, go, are boosted and lapse, an explanation says what a reserve does."""
    admin.made("/v1/credits/issue", {"account": org, "amount": "300"})
    fleet = Fleet(admin, org, gpu_type, seed)
    for _ in range(STEPS):
        account = fleet.chance.choice(fleet.paths)
        step = fleet.chance.random()
        if step < 0.10:
            fleet.set_quota(account)
        elif step < 0.20:
            fleet.change_a_limit(account)
        elif step < 0.60:
            fleet.ask(account)
        elif step < 0.90:
            fleet.beat()
        else:
            fleet.end()
    assert {201, 403} <= fleet.statuses
    assert fleet.opened <= 3
