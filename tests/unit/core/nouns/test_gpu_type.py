"""Names of GPU types and regions: one spelling for each, and pools named by both."""

from __future__ import annotations

import msgspec
import pytest

from gpucredits.core.gpu_type import check_gpu_type, check_region, parse_pool
from gpucredits.wire.billing.price import PriceRequest
from gpucredits.wire.scalars import decoder_of


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("h100", "h100"),
        (" H100\t", "h100"),
        ("NVIDIA.com/H100", "nvidia.com/h100"),
        ("NVIDIA A100-SXM4-80GB", "nvidia a100-sxm4-80gb"),
    ],
)
def test_a_type_has_one_spelling(text: str, name: str) -> None:
    """Space around a name and capitals make no other type."""
    assert check_gpu_type(text) == name
    assert check_gpu_type(name) == name


@pytest.mark.parametrize(
    "text", ["", "  ", "/h100", "h100/", "a/b/c", "..", "a/..", "./b", "x" * 201]
)
def test_what_is_no_type_is_refused(text: str) -> None:
    """A type has one or two parts that an address can carry."""
    with pytest.raises(ValueError, match="must be"):
        check_gpu_type(text)


@pytest.mark.parametrize("text", ["", "a/b", ".", "weights", "Shares", " snapshot "])
def test_what_is_no_region_is_refused(text: str) -> None:
    """A region has no slash, and is no word that follows pools in addresses."""
    with pytest.raises(ValueError, match="must"):
        check_region(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("H100", ("h100", "default")),
        ("h100/EU", ("h100", "eu")),
        ("nvidia.com/h100", ("nvidia.com/h100", "default")),
        ("nvidia.com/h100/eu", ("nvidia.com/h100", "eu")),
        ("amd/mi300/default", ("amd/mi300", "default")),
    ],
)
def test_a_pool_is_named_by_type_and_region(text: str, place: tuple[str, str]) -> None:
    """A first part with a dot belongs to the type."""
    assert parse_pool(text) == place


def test_a_region_said_apart_leaves_the_rest_to_the_type() -> None:
    """So every type can be named in every region."""
    assert parse_pool("h100.sxm", "EU") == ("h100.sxm", "eu")
    assert parse_pool("amd/mi300", "default") == ("amd/mi300", "default")


def test_requests_are_read_in_that_spelling() -> None:
    """The wire decodes names into their one spelling, and says what is wrong with others."""
    decoder = decoder_of(PriceRequest)
    body = {"gpu_type": " Nvidia.com/H100 ", "region": " EU ", "credits_per_gpu_hour": "1"}
    read = decoder.decode(msgspec.json.encode(body))
    assert (read.gpu_type, read.region) == ("nvidia.com/h100", "eu")
    for wrong in ({"gpu_type": "a/b/c"}, {"region": "a/b"}, {"gpu_type": "h\u200b100"}):
        with pytest.raises(msgspec.ValidationError):
            decoder.decode(msgspec.json.encode(body | wrong))
