"""Which texts the wire takes, as regular expressions that decoders and JSON schemas share.

Owns: the letters of names, parts, notes, keys, paths, instants, slugs and time zones.
Must not: compile or match them (scalars does).
"""

from __future__ import annotations

from typing import Final

from gpucredits.core import bounds
from gpucredits.core.account import RESERVED_SEGMENTS

METADATA_KEY_LENGTH_MAX: Final = 64
NOTE_LENGTH_MAX: Final = 500

# Control characters, line separators and marks that reorder or hide text are not printable.
_UNPRINTABLE = (
    r"\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e0fff"  # tags, which JSON Schema has no escape for
)
NAME = rf"[^{_UNPRINTABLE}]{{1,{bounds.NAME_LENGTH_MAX}}}"
PART = rf"(?!\.{{1,2}} *(/|$))[^{_UNPRINTABLE}/]*[^{_UNPRINTABLE}/ ][^{_UNPRINTABLE}/]*"
NOTE = rf"[^{_UNPRINTABLE}]{{0,{NOTE_LENGTH_MAX}}}"
KEY = rf"[A-Za-z0-9._:/-]{{1,{METADATA_KEY_LENGTH_MAX}}}"
PATH = r"[a-z0-9][a-z0-9._-]{0,62}(/[a-z0-9][a-z0-9._-]{0,62}){0,2}"
NOT_RESERVED = rf"(?!(.*/)?({'|'.join(sorted(RESERVED_SEGMENTS))})(/|$))"
INSTANT = r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})"  # RFC 3339
SLUG = r"[a-z0-9][a-z0-9._-]{0,62}"
ZONE = r"[A-Za-z][A-Za-z0-9_+-]{0,29}(/[A-Za-z0-9_+-]{1,30}){0,2}"
