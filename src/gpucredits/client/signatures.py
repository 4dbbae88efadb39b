"""The signatures that ``help`` and editors show for the methods of the clients.

Owns: the real parameters of a method and the type that it returns, read from the function that
describes its call. Must not: send anything.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Required, TypeVar, Unpack, get_args, get_origin, get_type_hints

Function = TypeVar("Function", bound=Callable[..., Any])

_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)


class _FieldName:
    """Stands for a page, and gives the name of the field that is read of it."""

    def __getattr__(self, name: str) -> str:
        return name


def answer_of(build: Callable[..., Any]) -> Any:
    """The type of the answer to the call that a function describes."""
    return get_args(get_type_hints(build)["return"])[0]


def item_of(build: Callable[..., Any], items: Callable[[Any], Any]) -> Any:
    """The type of the items on the pages that a function asks for."""
    return get_args(get_type_hints(answer_of(build))[items(_FieldName())])[0]


def signature_of(build: Callable[..., Any], returns: Any) -> inspect.Signature:
    """The signature of the method: every field is a parameter of its own."""
    hints = get_type_hints(build)
    positional: list[inspect.Parameter] = [_SELF]
    named: list[inspect.Parameter] = []
    for parameter in inspect.signature(build).parameters.values():
        hint = hints[parameter.name]
        if parameter.kind is parameter.VAR_KEYWORD:
            named = [*_fields(hint), *named]
        elif parameter.kind is parameter.KEYWORD_ONLY:
            named.append(parameter.replace(annotation=hint))
        else:
            positional.append(parameter.replace(annotation=hint))
    return inspect.Signature([*positional, *named], return_annotation=returns)


def present(
    method: Function, *, name: str, owner: str, doc: str | None, signature: inspect.Signature
) -> Function:
    """Give a method the name, the text and the signature that ``help`` shows."""
    shown: Any = method
    shown.__name__, shown.__qualname__, shown.__doc__ = name, f"{owner}.{name}", doc
    shown.__signature__ = signature
    shown.__annotations__ = {
        each.name: each.annotation
        for each in signature.parameters.values()
        if each.annotation is not each.empty
    } | {"return": signature.return_annotation}
    return method


def _fields(unpacked: Any) -> Iterator[inspect.Parameter]:
    """A parameter for each field of ``Unpack[SomeTypedDict]``."""
    if get_origin(unpacked) is not Unpack:
        raise TypeError(f"{unpacked} does not say which fields there are")
    (fields,) = get_args(unpacked)
    for name, hint in get_type_hints(fields, include_extras=True).items():
        is_required = get_origin(hint) is Required
        yield inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if is_required else None,
            annotation=get_args(hint)[0] if is_required else hint,
        )
