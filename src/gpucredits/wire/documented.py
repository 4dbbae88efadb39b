"""The meanings of fields that several shapes share, and how a field states its meaning.

A field of a shape carries its sentence as ``Annotated[type, doc("...")]``; the OpenAPI document
shows the sentence before what the type itself says.
"""

from __future__ import annotations

from typing import Final

from msgspec import Meta, inspect


def doc(text: str) -> Meta:
    """The meaning of a field, in one sentence."""
    return Meta(description=text)


def type_of(field: inspect.Field) -> inspect.Type:
    """The type of a field, without the sentence around it."""
    kind = field.type
    return kind.type if isinstance(kind, inspect.Metadata) else kind


ACCOUNT: Final = doc("The path of the account.")
ALLOW_PARTIAL: Final = doc("Whether the job accepts fewer GPUs than it asks for.")
ALLOWANCE: Final = doc("What each period of the budget issues.")
AMOUNT: Final = doc("The number of credits.")
AS_OF: Final = doc("The instant for which the answer is true.")
ATOMIC: Final = doc("All items or none; otherwise each item stands alone.")
AUTO_SUSPEND: Final = doc("Whether an unusual hour suspends the account.")
AVAILABLE: Final = doc("Credits that can be held now: what grants hold, less holds, less debt.")
BOOSTS: Final = doc("The boosts that have not ended.")
BUDGETS: Final = doc("The budgets of the account.")
CALENDAR: Final = doc("The calendar period; null if there is none.")
REQUEST_CAPACITY: Final = doc("The most requests at once.")
CREDIT_CAPACITY: Final = doc("The most credits authorised at once.")
CPU: Final = doc("CPUs, in the pool's own unit.")
CREATED_AT: Final = doc("When it was created.")
CREDIT_LIMIT: Final = doc("How far a postpaid account may go below zero; 0 for a prepaid one.")
DEADLINE: Final = doc("Until when the request waits; must be in the future.")
ENDED_AT: Final = doc("When it ended; null if it has not.")
FLOOR: Final = doc("Spending up to this amount is never unusual.")
FUNDING: Final = doc("Whose credits the account may spend: own, or shared with its parent.")
GANG: Final = doc("The name shared by requests that start together or not at all.")
GANG_SIZE: Final = doc("The number of members of the gang.")
GPU_COUNT: Final = doc("The number of GPUs.")
GPU_TYPE: Final = doc("The GPU type, such as h100.")
GRACE_SECONDS: Final = doc("How long before its end a job is told to stop.")
GRANT_ID: Final = doc("The id of the grant; null if there is none.")
JOB_ID: Final = doc("The job's name, chosen by its owner.")
MEMORY: Final = doc("Memory, in the pool's own unit.")
METADATA: Final = doc("The caller's own labels.")
MODEL: Final = doc("Whether the account pays in advance (prepaid) or later (postpaid).")
NEXT_CURSOR: Final = doc("The cursor of the next page; null on the last page.")
NODE: Final = doc("The node's name, chosen by its owner.")
NOTE: Final = doc("A remark for people.")
OVERDRAFT_LIMIT: Final = doc(
    "The most that the house covers in total for jobs that end on an overdraft."
)
PAYMENT_REFERENCE: Final = doc("The payment's name in your payment system.")
POLICY: Final = doc("How the pool is shared.")
PRIORITY: Final = doc("The order among several.")
QUEUE_PRIORITY: Final = doc("Higher goes first, as far as the pool's policy counts it.")
QUOTAS: Final = doc("The quotas of the account.")
RATIO_PERCENT: Final = doc("An hour is unusual above this percentage of the median hour.")
REQUEST_REFILL: Final = doc("Requests added each hour.")
CREDIT_REFILL: Final = doc("Credits added each hour.")
REGION: Final = doc("The region; default unless given.")
RESERVATION_ID: Final = doc("The id of the lease.")
RESOURCES: Final = doc("Resources of the pool besides GPUs.")
RESULTS: Final = doc("One result for each item, in order.")
ROLLOVER: Final = doc("Whether the rest of a period rolls over: all of it, up to a cap, or none.")
ROLLOVER_SECONDS: Final = doc(
    "How long credits that rolled over stay valid; null means until the period ends."
)
SCOPE: Final = doc("The level of the account: org, project or user.")
SETTLED: Final = doc("Credits charged so far.")
SET_BY_SCOPE: Final = doc(
    "The scope of the key that set it; only this scope or a wider one may lift it."
)
SINCE: Final = doc("From this instant on.")
SOURCE: Final = doc("The account that credits leave.")
STATE: Final = doc("The state.")
STATUS: Final = doc("The status.")
TARGET: Final = doc("The account that credits arrive at.")
UNIT: Final = doc("The unit of the numbers.")
UNTIL: Final = doc("Before this instant.")
USED_MS: Final = doc("Total milliseconds of use since admission.")
WARN_PERCENT: Final = doc("Percentages of the used allowance at which a warning is sent.")
WEIGHT: Final = doc("The weight among siblings.")
WINDOW_MAX_SECONDS: Final = doc(
    "The most time a lease may last without a report, escrow windows included; 0 sets no bound."
)
ZONE: Final = doc("The IANA time zone of the calendar; null if there is no calendar.")
