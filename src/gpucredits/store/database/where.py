"""Conditions of a query, put together from constant texts; values travel only as parameters."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Where:
    """Conditions that must all hold, with the values for their places."""

    texts: list[str] = field(default_factory=list)
    values: list[object] = field(default_factory=list)

    def value(self, value: object) -> str:
        """The place of one more value."""
        self.values.append(value)
        return f"${len(self.values)}"

    def add(self, text: str, *values: object) -> None:
        """One more condition; each ``{}`` in it stands for a value."""
        self.texts.append(text.format(*(self.value(value) for value in values)))

    def before(self, columns: tuple[str, str], place: tuple[int, int]) -> None:
        """Rows before a place in the order of two columns, such as org and number."""
        self.texts.append(f"({', '.join(columns)}) < ({', '.join(map(self.value, place))})")

    def under(self, column: str, path: str) -> None:
        """The account itself and everything below it; columns of paths sort by bytes."""
        here, below, beyond = self.value(path), self.value(f"{path}/"), self.value(f"{path}0")
        self.texts.append(f"({column} = {here} OR ({column} >= {below} AND {column} < {beyond}))")

    def into(self, text: str, **places: str) -> str:
        """A constant query with these conditions at ``[where]``, and places where it names them."""
        query = text.replace("[where]", " AND ".join(self.texts))
        for name, place in places.items():
            query = query.replace(f"[{name}]", place)
        return query
