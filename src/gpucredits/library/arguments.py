"""Checks of what callers pass in.

Each refusal names the argument, what was wrong and what would be right. Owns the two exception
classes for bad input. Must not know any rule that needs history.
"""

from __future__ import annotations


class ArgumentValueError(ValueError):
    """A value of the right type that breaks a rule; `argument` names the parameter."""

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(f"{argument}: {problem}")
        self.argument = argument

    def __reduce__(self) -> tuple[type[ArgumentValueError], tuple[str, str]]:
        return type(self), (self.argument, str(self).removeprefix(f"{self.argument}: "))


class ArgumentTypeError(TypeError):
    """A value of the wrong type; `argument` names the parameter."""

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(f"{argument}: {problem}")
        self.argument = argument

    def __reduce__(self) -> tuple[type[ArgumentTypeError], tuple[str, str]]:
        return type(self), (self.argument, str(self).removeprefix(f"{self.argument}: "))


def check_integer(argument: str, value: object) -> int:
    """Accept an int of any size; refuse bool, float and everything else."""
    if type(value) is int:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise ArgumentTypeError(
        argument, f"must be an int, such as 10, not {type(value).__name__} {value!r}"
    )


def check_amount(argument: str, value: object) -> int:
    """Accept an int of zero or more."""
    amount = check_integer(argument, value)
    if amount < 0:
        raise ArgumentValueError(argument, f"must be zero or more, not {amount}")
    return amount


def check_name(argument: str, value: object) -> str:
    """Accept any text, the empty one included."""
    if not isinstance(value, str):
        raise ArgumentTypeError(
            argument, f"must be a str, such as 'a-1', not {type(value).__name__} {value!r}"
        )
    return value
