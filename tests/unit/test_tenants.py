"""TenantCredits: isolation, and questions across all tenants."""

from typing import Any

import pytest

from gpucredits import ArgumentTypeError, IrreconcilableError, TenantCredits


def test_tenants_do_not_touch_each_other() -> None:
    """A charge of one tenant leaves the others as they were, and the total adds up."""
    tenants = TenantCredits()
    tenants.tenant("acme").add("g", 10, 0, 50)
    tenants.tenant("bolt").add("g", 5, 10, 50)
    assert tenants.tenant("acme").charge(4, 20, "c") == 6
    assert tenants.tenant("bolt").charge(4, 20, "c") == 1
    assert tenants.names == ["acme", "bolt"]
    assert tenants.get_balances(20) == {"acme": 6, "bolt": 1}
    assert tenants.total(5) == 10
    assert tenants.total(20) == 7


def test_one_broken_tenant_does_not_hide_the_rest() -> None:
    """The others keep their balances, the broken one is listed, and no partial sum is given."""
    tenants = TenantCredits()
    tenants.tenant("whole").add("g", 7, 0, 50)
    broken = tenants.tenant("broken")
    broken.add("g", 5, 0, 50)
    broken.charge(5, 20)
    broken.charge(1, 10, "late")
    assert tenants.get_balances(20) == {"whole": 7}
    assert list(tenants.irreconcilable(20)) == ["broken"]
    assert tenants.irreconcilable(15) == {}
    with pytest.raises(IrreconcilableError) as caught:
        tenants.total(20)
    assert caught.value.__notes__ == ["tenant 'broken'"]


def test_bad_arguments_are_named() -> None:
    """A name has to be text and a timestamp an int; neither makes a tenant."""
    tenants = TenantCredits()
    wrong: list[Any] = [3, 1.5, "text"]
    with pytest.raises(ArgumentTypeError, match="name"):
        tenants.tenant(wrong[0])
    with pytest.raises(ArgumentTypeError, match="timestamp"):
        tenants.total(wrong[1])
    with pytest.raises(ArgumentTypeError, match="data"):
        TenantCredits.load(wrong[2])
    assert tenants.names == []


def test_tenants_have_no_hash() -> None:
    """A thing that changes cannot be a key."""
    with pytest.raises(TypeError):
        hash(TenantCredits())
    assert TenantCredits() != 3
