"""The commands of the model ledger: what each does, or why it is refused."""

from __future__ import annotations

from oracle.ledger_claims import keep_needed, lost, still_good, who_pays
from oracle.ledger_corrections import Corrections, refused
from oracle.ledger_model import (
    LATE_US,
    TOLERANCE_MS,
    Answer,
    Lease,
    Lot,
    Wallet,
    lineage,
)


class ModelLedger(Corrections):
    """The model with its commands; callers advance the time first."""

    def create(
        self, path: str, *, postpaid: bool, limit: int, shares: bool | None = None
    ) -> Answer:
        """Open an account."""
        if path in self.wallets:
            return refused("account_exists")
        if "/" in path and path.rpartition("/")[0] not in self.wallets:
            return refused("parent_unknown")
        if shares and "/" not in path:
            return refused("funding_invalid")
        self.number()
        self.wallets[path] = Wallet(path, postpaid, limit, shares="/" in path)
        self.fund(path, shares)
        return {}

    def fund(self, path: str, shares: bool | None) -> None:
        """A credit limit is like credits; what an operator says goes before that."""
        wallet = self.wallets[path]
        if wallet.postpaid and wallet.limit:
            wallet.give()
        if shares is not None:
            wallet.shares = shares

    def update(
        self,
        path: str,
        *,
        suspended: bool | None,
        postpaid: bool | None,
        limit: int | None,
        shares: bool | None = None,
    ) -> Answer:
        """Suspend, resume, or set the terms; who owes anything does not become prepaid."""
        wallet = self.wallets.get(path)
        if wallet is None:
            return refused("account_unknown")
        if shares and "/" not in path:
            return refused("funding_invalid")
        postpaid = wallet.postpaid if postpaid is None else postpaid
        if limit and not postpaid:
            return refused("limit_invalid")
        limit = wallet.limit if limit is None else limit
        if not postpaid and self.available(path) < 0:
            return refused("limit_in_use")
        wallet.postpaid, wallet.limit = postpaid, limit
        if suspended and not wallet.suspended:
            self.shorten(path)
        wallet.suspended = wallet.suspended if suspended is None else suspended
        self.fund(path, shares)
        return {}

    def shorten(self, path: str) -> None:
        """What runs at or below a path ends after its grace, or where it would anyway."""
        for lease in self.leases.values():
            if lease.phase == "active" and path in lineage(lease.account):
                lease.ends = min(lease.ends, self.now + lease.grace * 1_000)
                lease.decision, lease.reason = "drain", "account_suspended"
                if lease.ends <= self.now:
                    lease.decision = "stop"
                    self.finish(lease, "expired")

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
        lot.made = self.now
        self.lots.append(lot)
        self.wallets[path].give()
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
        """The payment was taken back: its lots give what is free, the account owes the rest."""
        payment = self.payments.get(number)
        if payment is None:
            return refused("topup_unknown")
        if payment["status"] != "confirmed":
            return refused("topup_state")
        payment["status"] = "reversed"
        path, lot = payment["path"], self.lot(payment["lot"])
        kin = [lot]
        for each in kin:
            kin += [other for other in self.lots if other.origin == each.number]
        returned = 0
        for each in sorted(kin, key=lambda each: each.number):
            if each.phase == "live":
                part = min(each.left, max(self.available(each.owner), 0))
                each.left -= part
                returned += part
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
        self.wallets[target].give()
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
            arrived.made = self.now
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
        milli_gpus: int,
        window: int,
        escrow: int,
        cap: int,
        payer: str,
        scope: str = "",
        node: str = "",
        grace: int = 0,
    ) -> Answer:
        """Give a lease if one account that may pay can fund one window: the nearest does."""
        if account not in self.wallets:
            return refused("account_unknown")
        if any(self.wallets[path].suspended for path in lineage(account)):
            return refused("account_suspended")
        prices = [p for owner in [*lineage(account), ""] for p in self.prices if p[1] == owner]
        price = next((p[2] for p in prices if p[0] == gpu_type), None)
        if price is None:
            return refused("price_unknown")
        payers = self.chain(account)
        if payer:
            is_mine = f"{payer}/".startswith(f"{scope}/") or not scope
            payers = [p for p in lineage(account) if p == payer and (p in payers or is_mine)]
        if not payers:
            return refused("payer_invalid")
        full = window * (1 + escrow)
        lease = Lease(0, account, "", milli_gpus * price, full, cap, self.now)
        lease.node, lease.grace = node, min(grace, window)
        return self.admit(lease, payers)

    def admit(self, lease: Lease, payers: list[str]) -> Answer:
        """Start a lease whose first window one of the payers can fund."""
        lease.held = lease.wanted()
        if lease.funded_ms() == 0:
            return refused("max_amount_too_small")
        for other in self.leases.values():
            where = (other.phase, other.account, other.node)
            if where == ("active", lease.account, lease.node):
                return refused("reservation_exists")
        able = [path for path in payers if self.room(path) >= lease.held]
        if not able:
            return refused("insufficient_credits")
        lease.payer = able[0]
        lease.ends = self.now + lease.funded_ms() * 1_000
        lease.number, lease.beat = self.number(), self.now
        self.leases[lease.number] = lease
        return {"lease": lease.number, "payer": lease.payer, "held": lease.held, "ends": lease.ends}

    def beat(self, number: int, seq: int, used: int) -> Answer:
        """Settle what was used and renew."""
        lease = self.leases.get(number)
        if lease is None:
            return refused("reservation_unknown")
        if lease.phase != "active":
            self.charge_late(lease, seq, used)
            return self.told(lease, "stop", reason=lease.phase)
        if seq <= lease.seq:
            was_cut = lease.used >= (lease.beat - lease.admitted) // 1_000
            flag = "seq_taken" if used > lease.used and not was_cut else ""
            return self.told(lease, lease.decision, reason=lease.reason, duplicate=True, flag=flag)
        lease.seq, payer = seq, lease.payer
        believed, flag = self.believe(lease, used)
        due = lease.cost(believed) - lease.cost(lease.used)
        before, funds = lease.held, lease.held + max(self.room(lease.payer), 0)
        covered = min(due, funds)
        taken = who_pays(self, lease, believed, covered)
        still = still_good(self, lease, believed, taken)
        gone, gone_without = lost(self, lease, taken, still), lost(self, lease, taken)
        active = funds - covered - gone_without
        self.bill(lease, self.pay(lease, taken), due - covered)
        lease.used, lease.beat = believed, self.now
        wanted = lease.wanted()
        lease.held = min(wanted, funds - covered - gone)
        reason = ""
        if any(self.wallets[path].suspended for path in lineage(lease.account)):
            lease.held = min(lease.held, max(before - gone - covered, 0))
            reason = "account_suspended"
        elif active < wanted and not self.move_up(lease, wanted):
            reason = "insufficient_credits"
        elif lease.cap and lease.cost(lease.used) + lease.held >= lease.cap:
            reason = "max_amount"
        if lease.payer == payer:
            keep_needed(self, lease, still if lease.held > active else {})
        self.renew(lease, reason)
        return self.told(lease, lease.decision, reason=reason, flag=flag)

    def move_up(self, lease: Lease, wanted: int) -> bool:
        """Let the nearest account above hold the window of a lease whose payer cannot."""
        held, lease.held = lease.held, 0
        for path in self.chain(lease.account):
            if len(path) < len(lease.payer) and self.room(path) >= wanted:
                keep_needed(self, lease, {})
                self.collect(lease.payer)
                lease.payer, lease.held = path, wanted
                return True
        lease.held = held
        return False

    def renew(self, lease: Lease, reason: str) -> None:
        """Let the lease run as far as it is funded; a suspended one not beyond where it ended."""
        ends = self.now + lease.funded_ms() * 1_000
        lease.ends = min(ends, lease.ends) if reason == "account_suspended" else ends
        lease.decision, lease.reason = "drain" if reason else "continue", reason
        if lease.ends <= self.now:
            lease.decision = "stop"
            self.finish(lease, "expired")

    def believe(self, lease: Lease, used: int) -> tuple[int, str]:
        """Use neither goes back nor runs faster than the clock, nor costs more than may be paid."""
        if used < lease.used:
            return lease.used, "used_ms_went_back"
        elapsed = (self.now - lease.admitted) // 1_000
        flag = "used_ms_beyond_elapsed" if used > elapsed + TOLERANCE_MS else ""
        used = min(used, elapsed)
        budget = lease.cost(lease.used) + lease.held + max(self.room(lease.payer), 0)
        paid_for = lease.paid_for(min(budget, lease.cap) if lease.cap else budget, used)
        return (paid_for, "used_ms_beyond_authorised") if paid_for < used else (used, flag)

    def charge_late(self, lease: Lease, seq: int, used: int) -> None:
        """Charge use that was reported after a lapse, capped there and at what was authorised."""
        used = min(used, (lease.ends - lease.admitted) // 1_000)
        if lease.phase != "expired" or seq <= lease.seq or used <= lease.used:
            return
        self.late.append((lease.number, seq, used))
        used = lease.paid_for(lease.authorised, used)
        if used == lease.used or self.now - lease.ends > LATE_US:
            return
        lease.seq = seq
        due = lease.cost(used) - lease.cost(lease.used)
        covered = min(due, max(self.room(lease.payer), 0))
        self.bill(lease, self.take(lease.payer, covered), due - covered)
        lease.used = used

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
            self.charge_late(lease, seq, used)
            return self.closed(lease, 0)
        if lease.phase != "active":
            return refused("reservation_ended")
        lease.seq = seq
        believed, _ = self.believe(lease, used)
        due = lease.cost(believed) - lease.cost(lease.used)
        covered = min(due, lease.held + max(self.room(lease.payer), 0))
        taken = who_pays(self, lease, believed, covered)
        self.bill(lease, self.pay(lease, taken), due - covered)
        lease.used = believed
        lease.held = max(lease.held - due, 0)
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
