"""Credits and GPUs as integers, as texts and in sentences; and the only place that rounds.

Owns: micro-credits and thousandths of GPUs to text and back, the cumulative charge formula and its
inverse, the singular of a number in a sentence. A share of one GPU is a number such as 0.46.
Must not: use floats, even for display.
"""

from __future__ import annotations

import re

MILLI_PER_GPU = 1_000
GPU_DECIMALS = 3
_COUNT = re.compile(r"(\d{1,10})(?:\.(\d{1,3}))?", re.ASCII)
MICROS_PER_CREDIT = 1_000_000
DECIMALS = 6
MS_PER_HOUR = 3_600_000
# What a rate is divided by: rates are thousandths of GPUs times micro-credits per GPU-hour.
RATE_PER_MS = MILLI_PER_GPU * MS_PER_HOUR
AMOUNT_MAX = 10**15  # a billion credits in micro-credits: sums of thousands of them fit in a BIGINT

_AMOUNT = re.compile(r"(-?)(\d{1,10})(?:\.(\d{1,6}))?", re.ASCII)


def parse_gpus(text: str) -> int:
    """Thousandths of GPUs from a text such as ``"0.46"``; ValueError says what is wrong."""
    match = _COUNT.fullmatch(text)
    if match is None:
        raise ValueError(
            f"must be a number of GPUs with at most {GPU_DECIMALS} digits after the point, "
            "such as 2 or 0.46"
        )
    whole, fraction = match.groups()
    return int(whole) * MILLI_PER_GPU + int((fraction or "").ljust(GPU_DECIMALS, "0"))


def format_gpus(milli_gpus: int) -> str:
    """The shortest decimal string that is exactly so many thousandths of a GPU."""
    if milli_gpus < 0:
        return f"-{format_gpus(-milli_gpus)}"
    whole, rest = milli_gpus // MILLI_PER_GPU, milli_gpus % MILLI_PER_GPU
    return f"{whole}.{str(MILLI_PER_GPU + rest)[1:].rstrip('0')}" if rest else str(whole)


def whole_gpus(milli_gpus: int) -> int:
    """The thousandths of the whole GPUs in so many thousandths."""
    return milli_gpus - milli_gpus % MILLI_PER_GPU


def parse_credits(text: str) -> int:
    """Micro-credits from a decimal string such as ``"12.5"``; ValueError says what is wrong.

    A billion credits, either way, is the most that any amount may be.
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError(
            f"must be a decimal string of at most {format_credits(AMOUNT_MAX)} with at most "
            f'{DECIMALS} digits after the point, such as "12.5"'
        )
    sign, whole, fraction = match.groups()
    micros = int(whole) * MICROS_PER_CREDIT + int((fraction or "").ljust(DECIMALS, "0"))
    if micros > AMOUNT_MAX:
        raise ValueError(f"must be at most {format_credits(AMOUNT_MAX)}")
    return -micros if sign else micros


def format_credits(micros: int) -> str:
    """The shortest decimal string that is exactly ``micros``."""
    if micros < 0:
        return f"-{format_credits(-micros)}"
    whole, rest = micros // MICROS_PER_CREDIT, micros % MICROS_PER_CREDIT
    return f"{whole}.{str(MICROS_PER_CREDIT + rest)[1:].rstrip('0')}" if rest else str(whole)


def cost(rate: int, used_ms: int) -> int:
    """What ``used_ms`` of use costs in all at a rate (thousandths of GPUs times price).

    It is rounded down once.

    The formula is cumulative: a bill is always the cost of the total time, so splitting, losing
    or repeating reports never changes it.
    """
    return rate * used_ms // RATE_PER_MS


def time_covered_ms(rate: int, amount: int) -> int:
    """The longest use in ms whose cost is at most ``amount``; the rate must be positive."""
    return ((amount + 1) * RATE_PER_MS - 1) // rate


def count(number: int | str, thing: str) -> str:
    """So many of something, such as 1 GPU or 2 GPUs."""
    return f"{number} {thing}" if is_one(number) else f"{number} {thing}s"


def count_of(number: int | str, things: str) -> str:
    """The same for the name of a unit, which is a plural: 1 GPU of GPUs."""
    return count(number, things.removesuffix("s"))


def count_credits(micros: int) -> str:
    """So many credits, such as 1 credit or 1.5 credits."""
    return count(format_credits(micros), "credit")


def be(number: int | str) -> str:
    """What so many of something do: one is, two are."""
    return "is" if is_one(number) else "are"


def is_one(number: int | str) -> bool:
    """Whether it takes the singular; 1.5 and 0 do not."""
    return str(number) == "1"
