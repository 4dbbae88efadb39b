"""The corrections of the model ledger: what goes back to whom, and what is charged on top."""

from __future__ import annotations

from oracle.ledger_model import DEBT, HOUSE, Answer, Model


def refused(reason: str) -> Answer:
    """A command that was not carried out."""
    return {"refused": reason}


class Corrections(Model):
    """The model with what corrects a charge."""

    def refund(self, number: int, amount: int) -> Answer:
        """Give back to whoever paid last, first."""
        lease = self.leases.get(number)
        if lease is None:
            return refused("reservation_unknown")
        if amount > lease.charged():
            return refused("refund_exceeds")
        lots = []
        while amount:
            (who, paid), owner = lease.bills.pop(), lease.owners.pop()
            part = min(paid, amount)
            if paid > part:
                lease.bills.append((who, paid - part))
                lease.owners.append(owner)
            lots.append((owner, who, part))
            amount -= part
        return {"lots": [item for lot in lots for item in self.give_back(*lot)]}

    def give_back(self, owner: str, who: int, amount: int) -> list[tuple[int, int]]:
        """Undo one bill; what lots have repaid of it goes back to them, the last one first."""
        wallet = self.wallets[owner]
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
            if (path, what) == (owner, who) and min(repaid, rest):
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
        return {"lots": self.bill(lease, self.take(lease.payer, covered), amount - covered)}
