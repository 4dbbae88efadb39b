"""The commands of the model ledger: what each does, or why it is refused."""

from __future__ import annotations

from oracle.ledger_model import (
    DEBT,
    HOUSE,
    TOLERANCE_MS,
    Answer,
    Lease,
    Lot,
    Model,
    Wallet,
    lineage,
)


def refused(reason: str) -> Answer:
    """A command that was not carried out."""
    return {"refused": reason}


class ModelLedger(Model):
    """The model with its commands; callers advance the time first."""

    def create(self, path: str, *, postpaid: bool, limit: int) -> Answer:
        """Open an account."""
        if path in self.wallets:
            return refused("account_exists")
        if "/" in path and path.rpartition("/")[0] not in self.wallets:
            return refused("parent_unknown")
        self.number()
        self.wallets[path] = Wallet(path, postpaid, limit)
        return {}

    def update(
        self, path: str, *, suspended: bool | None, postpaid: bool | None, limit: int | None
    ) -> Answer:
        """Suspend, resume, or move the floor as long as the balance is above the new one."""
        wallet = self.wallets.get(path)
        if wallet is None:
            return refused("account_unknown")
        postpaid = wallet.postpaid if postpaid is None else postpaid
        if limit and not postpaid:
            return refused("limit_invalid")
        limit = wallet.limit if limit is None else limit
        if self.available(path) < (-limit if postpaid else 0):
            return refused("limit_in_use")
        wallet.postpaid, wallet.limit = postpaid, limit
        wallet.suspended = wallet.suspended if suspended is None else suspended
        return {}

    def issue(
        self, path: str, amount: int, *, starts: int | None, ends: int, priority: int, source: str
    ) -> Answer:
        """Make a lot."""
        if path not in self.wallets:
            return refused("account_unknown")
        starts = self.now if starts is None else starts
        if ends <= self.now or ends <= starts:
            return refused("window_ended")
        lot = Lot(self.number(), path, amount, amount, starts, ends, priority, source)
        self.lots.append(lot)
        if starts <= self.now:
            self.start_lot(lot)
        return {"grant": lot.number}

    def top_up(
        self, path: str, amount: int, *, confirmed: bool, ends: int, priority: int
    ) -> Answer:
        """Record a payment."""
        if path not in self.wallets:
            return refused("account_unknown")
        if ends <= self.now:
            return refused("window_ended")
        payment = {"path": path, "amount": amount, "ends": ends, "priority": priority}
        number = self.number()
        self.payments[number] = {**payment, "status": "pending", "lot": 0}
        return self.confirm(number) if confirmed else {"topup": number, "grant": 0}

    def confirm(self, number: int) -> Answer:
        """The payment arrived."""
        payment = self.payments.get(number)
        if payment is None:
            return refused("topup_unknown")
        if payment["status"] != "pending":
            return refused("topup_state")
        if payment["ends"] <= self.now:
            return refused("window_ended")
        answer = self.issue(
            payment["path"],
            payment["amount"],
            starts=None,
            ends=payment["ends"],
            priority=payment["priority"],
            source="topup",
        )
        payment.update(status="confirmed", lot=answer["grant"])
        return {"topup": number, "grant": answer["grant"]}

    def fail(self, number: int) -> Answer:
        """The payment will not arrive."""
        if number not in self.payments:
            return refused("topup_unknown")
        if self.payments[number]["status"] != "pending":
            return refused("topup_state")
        self.payments[number]["status"] = "failed"
        return {"topup": number, "grant": 0}

    def reverse(self, number: int) -> Answer:
        """The payment was taken back: its lot gives what is free, the account owes the rest."""
        payment = self.payments.get(number)
        if payment is None:
            return refused("topup_unknown")
        if payment["status"] != "confirmed":
            return refused("topup_state")
        payment["status"] = "reversed"
        path, lot = payment["path"], self.lot(payment["lot"])
        returned = min(lot.left, max(self.available(path), 0))
        lot.left -= returned
        kin = [lot]
        for each in kin:
            kin += [other for other in self.lots if other.origin == each.number]
        owed = payment["amount"] - returned - sum(each.expired for each in kin)
        covered = min(owed, max(self.room(path), 0))
        self.take(path, covered)
        self.wallets[path].overrun += owed - covered
        return {"topup": number, "grant": lot.number}

    def transfer(self, source: str, target: str, amount: int) -> Answer:
        """Move free credits lot by lot; what arrives keeps its window, priority and source."""
        if source not in self.wallets or target not in self.wallets:
            return refused("account_unknown")
        if source == target:
            return refused("same_account")
        if self.available(source) < amount:
            return refused("insufficient_credits")
        moved = []
        for lot in [lot for lot in self.usable(source) if lot.phase == "live"]:
            part = min(lot.left, amount)
            if part:
                lot.left -= part
                amount -= part
                moved.append((lot.number, self.land(lot, target, part), part))
        self.number()
        return {"lots": moved}

    def land(self, lot: Lot, target: str, part: int) -> int:
        """Let a part of a lot arrive: in the lot its kin arrived in, or in a new one."""
        kin = [k for k in self.usable(target) if k.origin == lot.number and k.phase == "live"]
        if kin:
            arrived = kin[0]
        else:
            arrived = Lot(self.number(), target, 0, 0, lot.starts, lot.ends, lot.priority)
            arrived.source, arrived.origin, arrived.phase = lot.source, lot.number, "live"
            self.lots.append(arrived)
        arrived.amount += part
        arrived.left += part
        self.repay(arrived, part)
        return arrived.number

    def reserve(
        self,
        account: str,
        *,
        gpu_type: str,
        gpus: int,
        window: int,
        escrow: int,
        cap: int,
        payer: str,
    ) -> Answer:
        """Give a lease if the payer can fund one window."""
        if account not in self.wallets:
            return refused("account_unknown")
        if any(self.wallets[path].suspended for path in lineage(account)):
            return refused("account_suspended")
        prices = [p for owner in [*lineage(account), ""] for p in self.prices if p[1] == owner]
        price = next((p[2] for p in prices if p[0] == gpu_type), None)
        if price is None:
            return refused("price_unknown")
        payers = [path for path in lineage(account) if payer in ("", path)]
        if not payers:
            return refused("payer_invalid")
        paying = next((path for path in payers if payer or self.can_pay(path)), None)
        if paying is None:
            return refused("no_payer")
        full = window * (1 + escrow)
        return self.admit(Lease(0, account, paying, gpus * price, full, cap, self.now))

    def admit(self, lease: Lease) -> Answer:
        """Start a lease whose first window is funded."""
        lease.held = lease.wanted()
        if lease.funded_ms() == 0:
            return refused("max_amount_too_small")
        if self.room(lease.payer) < lease.held:
            return refused("insufficient_credits")
        lease.ends = self.now + lease.funded_ms() * 1_000
        lease.number = self.number()
        self.leases[lease.number] = lease
        return {"lease": lease.number, "payer": lease.payer, "held": lease.held, "ends": lease.ends}

    def can_pay(self, path: str) -> bool:
        """Postpaid, or with a lot that has not ended, even an empty one."""
        unended = [lot for lot in self.lots if lot.owner == path and lot.ends > self.now]
        return self.wallets[path].postpaid or bool(unended)

    def beat(self, number: int, seq: int, used: int) -> Answer:
        """Settle what was used and renew."""
        lease = self.leases.get(number)
        if lease is None:
            return refused("reservation_unknown")
        if lease.phase != "active":
            self.note_late(lease, seq, used)
            return self.told(lease, "stop", reason=lease.phase)
        if seq <= lease.seq:
            return self.told(lease, lease.decision, duplicate=True)
        lease.seq = seq
        believed, flag = self.believe(lease, used)
        due = lease.cost(believed) - lease.cost(lease.used)
        before, funds = lease.held, lease.held + max(self.room(lease.payer), 0)
        covered = min(due, funds)
        lease.held = 0
        self.charge(lease, due, covered)
        lease.used = believed
        wanted = lease.wanted()
        lease.held = min(wanted, funds - covered)
        reason = ""
        if any(self.wallets[path].suspended for path in lineage(lease.account)):
            lease.held = min(lease.held, max(before - covered, 0))
            reason = "account_suspended"
        elif lease.held < wanted:
            reason = "insufficient_credits"
        elif lease.cap and lease.cost(lease.used) + lease.held >= lease.cap:
            reason = "max_amount"
        self.let_go(lease, before - due - lease.held)
        self.renew(lease, reason)
        return self.told(lease, lease.decision, reason=reason, flag=flag)

    def renew(self, lease: Lease, reason: str) -> None:
        """Let the lease run as far as it is funded; a suspended one not beyond where it ended."""
        ends = self.now + lease.funded_ms() * 1_000
        lease.ends = min(ends, lease.ends) if reason == "account_suspended" else ends
        lease.decision = "drain" if reason else "continue"
        if lease.ends <= self.now:
            lease.decision = "stop"
            self.finish(lease, "expired")

    def believe(self, lease: Lease, used: int) -> tuple[int, str]:
        """Use neither goes back nor runs faster than the clock."""
        if used < lease.used:
            return lease.used, "used_ms_went_back"
        most = (self.now - lease.admitted) // 1_000 + TOLERANCE_MS
        return (most, "used_ms_beyond_elapsed") if used > most else (used, "")

    def note_late(self, lease: Lease, seq: int, used: int) -> None:
        """Keep use that was reported after a lapse, capped there."""
        used = min(used, (lease.ends - lease.admitted) // 1_000)
        if lease.phase == "expired" and seq > lease.seq and used > lease.used:
            self.late.append((lease.number, seq, used))

    def told(
        self,
        lease: Lease,
        decision: str,
        *,
        reason: str = "",
        duplicate: bool = False,
        flag: str = "",
    ) -> Answer:
        """What the node hears."""
        left = (lease.ends - self.now) // 1_000 if lease.phase == "active" else 0
        return {
            "decision": decision,
            "settled": lease.cost(lease.used),
            "held": lease.held,
            "left": left,
            "reason": reason,
            "duplicate": duplicate,
            "flag": flag,
        }

    def settle(self, number: int, seq: int | None, used: int | None) -> Answer:
        """The job ended."""
        lease = self.leases.get(number)
        if lease is None:
            return refused("reservation_unknown")
        if seq is None or seq <= lease.seq:  # taken: the last word gets a seq all the same
            seq = lease.seq + 1
        used = lease.used if used is None else used
        if lease.phase == "expired":
            self.note_late(lease, seq, used)
            return self.closed(lease, 0)
        if lease.phase != "active":
            return refused("reservation_ended")
        lease.seq = seq
        believed, _ = self.believe(lease, used)
        due = lease.cost(believed) - lease.cost(lease.used)
        before, funds = lease.held, lease.held + max(self.room(lease.payer), 0)
        lease.held = 0
        self.charge(lease, due, min(due, funds))
        lease.used = believed
        lease.held = max(before - due, 0)
        lease.ends = self.now
        return self.closed(lease, self.finish(lease, "settled"))

    def cancel(self, number: int) -> Answer:
        """The job never started."""
        lease = self.leases.get(number)
        if lease is None:
            return refused("reservation_unknown")
        if lease.phase != "active":
            return refused("reservation_ended")
        if lease.used:
            return refused("reservation_started")
        lease.ends = self.now
        return self.closed(lease, self.finish(lease, "canceled"))

    def closed(self, lease: Lease, released: int) -> Answer:
        """A lease's final state."""
        settled = lease.cost(lease.used)
        return {"phase": lease.phase, "settled": settled, "released": released}

    def refund(self, number: int, amount: int) -> Answer:
        """Give back to whoever paid last, first."""
        lease = self.leases.get(number)
        if lease is None:
            return refused("reservation_unknown")
        if amount > lease.charged():
            return refused("refund_exceeds")
        lots = []
        while amount:
            who, paid = lease.bills.pop()
            part = min(paid, amount)
            if paid > part:
                lease.bills.append((who, paid - part))
            lots.append((who, part))
            amount -= part
        return {"lots": [item for who, part in lots for item in self.give_back(lease, who, part)]}

    def give_back(self, lease: Lease, who: int, amount: int) -> list[tuple[int, int]]:
        """Undo one bill; what lots have repaid of it goes back to them, the last one first."""
        wallet = self.wallets[lease.payer]
        owed = {DEBT: wallet.debt, HOUSE: wallet.overrun}.get(who, 0)
        part = min(amount, owed)
        if who == DEBT:
            wallet.debt -= part
        elif who == HOUSE:
            wallet.overrun -= part
        else:
            self.put_back(who, amount)
            return [(who, amount)]
        given = [(who, part)] if part else []
        rest = amount - part
        for index in reversed(range(len(self.repaid))):
            path, what, number, repaid = self.repaid[index]
            if (path, what) == (lease.payer, who) and min(repaid, rest):
                taken = min(repaid, rest)
                self.repaid[index] = (path, what, number, repaid - taken)
                rest -= taken
                if given and given[-1][0] == number:
                    taken += given.pop()[1]
                given.append((number, taken))
        assert not rest, "what is no longer owed was repaid by somebody"
        for number, taken in given:
            if number > 0:
                self.put_back(number, taken)
        return given

    def put_back(self, number: int, amount: int) -> None:
        """Credits come back to a lot; where it has ended those that nothing is owed of are gone."""
        lot = self.lot(number)
        before = lot.left
        lot.left += amount
        self.repay(lot, amount)
        if lot.ends <= self.now:
            self.lose(lot, lot.left - before)

    def adjust(self, number: int, amount: int) -> Answer:
        """Charge more."""
        lease = self.leases.get(number)
        if lease is None:
            return refused("reservation_unknown")
        covered = min(amount, max(self.room(lease.payer), 0))
        return {"lots": self.charge(lease, amount, covered)}
