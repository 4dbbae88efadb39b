"""Near names: which known word somebody may have meant by an unknown one.

Owns: which words are near, the sentence that offers them, and choices among words that do.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from typing import Any, Final

import click

OFFERED_MAX: Final = 3
WORSE_MAX: Final = 0.15  # how much less like a word the others may be than the likeliest
PART_MIN: Final = 3  # letters of a word that is offered because it has them


def near(word: str, words: Iterable[str]) -> list[str]:
    """The words that are like this one, the likeliest first; else those that contain it."""
    known = {plain(each): each for each in words}
    given = plain(word)
    found = get_close_matches(given, known, n=OFFERED_MAX)
    if found:
        best = likeness(given, found[0])
        found = [each for each in found if likeness(given, each) > best - WORSE_MAX]
    if not found and len(given.strip("-")) >= PART_MIN:
        found = [each for each in known if given.strip("-") in each][:OFFERED_MAX]
    return [known[each] for each in found]


def likeness(word: str, other: str) -> float:
    """How much two words are alike, from 0 to 1."""
    return SequenceMatcher(None, other, word).ratio()


def plain(word: str) -> str:
    """A word in the form in which words are compared: hyphens and capitals do not count."""
    return word.lower().replace("_", "-")


def offer(words: Iterable[str]) -> str:
    """The end of a message that offers these words; nothing when there are none."""
    *most, last = list(words) or [""]
    if not last:
        return ""
    return f" Did you mean {', '.join(most)} or {last}?" if most else f" Did you mean {last}?"


class Choice(click.Choice[str]):
    """A choice among words, however hyphens and capitals are written; near words are offered."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """The words themselves for an option; an argument has a name, and help lists its words."""
        if isinstance(param, click.Argument):
            name = (param.name or "word").upper()
            return name if param.required else f"[{name}]"
        return super().get_metavar(param, ctx)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word as it was declared."""
        given = plain(str(value))
        for word in self.choices:
            if plain(word) == given:
                return word
        known = ", ".join(repr(word) for word in self.choices)
        hint = offer(near(given, self.choices))
        raise click.BadParameter(f"{value!r} is not one of {known}.{hint}", ctx, param)
