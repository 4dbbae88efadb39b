"""Methods of both clients, each made from the function that describes its call.

Owns: turning such a function into a method that sends the call: ``Client`` returns the answer,
``AsyncClient`` something to await. Lists are iterators over all pages. Each method shows its real
parameters and the type of its answer to ``help`` and to editors.
Must not: know how calls are sent, or which calls there are.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from types import MethodType
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Required,
    Self,
    TypeVar,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from gpucredits.client.call import Call

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Item = TypeVar("Item")
Function = TypeVar("Function", bound=Callable[..., Any])

_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)


class Sender(ABC):
    """A client whose calls return."""

    @abstractmethod
    def send(self, call: Call[Answer]) -> Answer:
        """Make a call."""


class AsyncSender(ABC):
    """A client whose calls are awaited."""

    @abstractmethod
    async def send(self, call: Call[Answer]) -> Answer:
        """Make a call."""


class Paged(Protocol):
    """An answer that may have another after it."""

    next_cursor: str | None


Page = TypeVar("Page", bound=Paged)


class Operation(Generic[Given, Answer]):
    """A method that makes one call."""

    def __init__(self, build: Callable[Given, Call[Answer]]) -> None:
        self._build = build
        self._name = build.__name__
        self.__doc__ = build.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(
        self, client: None, owner: type[Sender]
    ) -> Callable[Concatenate[Sender, Given], Answer]: ...
    @overload
    def __get__(
        self, client: None, owner: type[AsyncSender]
    ) -> Callable[Concatenate[AsyncSender, Given], Coroutine[Any, Any, Answer]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Sender, owner: type) -> Callable[Given, Answer]: ...
    @overload
    def __get__(
        self, client: AsyncSender, owner: type
    ) -> Callable[Given, Coroutine[Any, Any, Answer]]: ...
    def __get__(self, client: object, owner: type) -> Any:
        """The method of the class, or bound to a client."""
        if not issubclass(owner, Sender | AsyncSender):
            return self
        method = self._method if issubclass(owner, Sender) else self._async_method
        return method if client is None else MethodType(method, client)

    @functools.cached_property
    def _method(self) -> Callable[Concatenate[Sender, Given], Answer]:
        build = self._build

        def call(self: Sender, /, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
            return self.send(build(*args, **kwargs))

        return self._presented(call, "Client")

    @functools.cached_property
    def _async_method(
        self,
    ) -> Callable[Concatenate[AsyncSender, Given], Coroutine[Any, Any, Answer]]:
        build = self._build

        async def call(self: AsyncSender, /, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
            return await self.send(build(*args, **kwargs))

        return self._presented(call, "AsyncClient")

    def _presented(self, method: Function, owner: str) -> Function:
        signature = signature_of(self._build, answer_of(self._build))
        return present(method, name=self._name, owner=owner, doc=self.__doc__, signature=signature)


class Listing(Generic[Given, Page, Item]):
    """A method that iterates over the items of all pages, fetching each when it is needed."""

    def __init__(
        self, build: Callable[Given, Call[Page]], items: Callable[[Page], Sequence[Item]]
    ) -> None:
        self._build = build
        self._items = items
        self._name = build.__name__
        self.__doc__ = (
            f"Iterate over the items of all pages; ``{build.__name__}`` gives one page.\n\n"
            f"The pages: {build.__doc__}"
        )

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(
        self, client: None, owner: type[Sender]
    ) -> Callable[Concatenate[Sender, Given], Iterator[Item]]: ...
    @overload
    def __get__(
        self, client: None, owner: type[AsyncSender]
    ) -> Callable[Concatenate[AsyncSender, Given], AsyncIterator[Item]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Sender, owner: type) -> Callable[Given, Iterator[Item]]: ...
    @overload
    def __get__(self, client: AsyncSender, owner: type) -> Callable[Given, AsyncIterator[Item]]: ...
    def __get__(self, client: object, owner: type) -> Any:
        """The method of the class, or bound to a client."""
        if not issubclass(owner, Sender | AsyncSender):
            return self
        method = self._method if issubclass(owner, Sender) else self._async_method
        return method if client is None else MethodType(method, client)

    @functools.cached_property
    def _method(self) -> Callable[Concatenate[Sender, Given], Iterator[Item]]:
        build, iterate = self._build, self._iterate

        def items(self: Sender, /, *args: Given.args, **kwargs: Given.kwargs) -> Iterator[Item]:
            return iterate(self, build(*args, **kwargs))

        return self._presented(items, "Client", Iterator)

    @functools.cached_property
    def _async_method(self) -> Callable[Concatenate[AsyncSender, Given], AsyncIterator[Item]]:
        build, iterate = self._build, self._iterate_async

        def items(
            self: AsyncSender, /, *args: Given.args, **kwargs: Given.kwargs
        ) -> AsyncIterator[Item]:
            return iterate(self, build(*args, **kwargs))

        return self._presented(items, "AsyncClient", AsyncIterator)

    def _presented(self, method: Function, owner: str, kind: Any) -> Function:
        signature = signature_of(self._build, kind[item_of(self._build, self._items)])
        return present(method, name=self._name, owner=owner, doc=self.__doc__, signature=signature)

    def _iterate(self, client: Sender, call: Call[Page] | None) -> Iterator[Item]:
        while call is not None:
            page = client.send(call)
            yield from self._items(page)
            call = call.at(page.next_cursor) if page.next_cursor else None

    async def _iterate_async(
        self, client: AsyncSender, call: Call[Page] | None
    ) -> AsyncIterator[Item]:
        while call is not None:
            page = await client.send(call)
            for item in self._items(page):
                yield item
            call = call.at(page.next_cursor) if page.next_cursor else None


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
