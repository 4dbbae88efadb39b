"""Orgs that no other test uses, and prices that every test may rely on."""

from __future__ import annotations

import secrets

from gpucredits.client import Client

GPU_TYPE = "h100"
CREDITS_PER_GPU_HOUR = "3600"  # a credit for each GPU-second


def new_org(client: Client) -> str:
    """Open an org with a random name, in which an h100 costs a credit a second."""
    path = f"org-{secrets.token_hex(6)}"
    client.create_account(path)
    client.set_price(GPU_TYPE, CREDITS_PER_GPU_HOUR, account=path)
    return path
