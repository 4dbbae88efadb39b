"""A command's way to its server: which one, with which key, and what its answers become.

Owns: the options that every command has, where address and key come from, and turning the
outcomes of calls into output and exit codes. The environment is read here and nowhere else.
Must not: know single commands.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypedDict, TypeVar

import click
import msgspec
from click.core import ParameterSource

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.address import DATA_DIR_DEFAULT, address_in
from gpucredits.cli.terminal.advice import advice
from gpucredits.cli.terminal.failure import Declined, Undone
from gpucredits.cli.terminal.server_options import SERVER_OPTIONS
from gpucredits.client import (
    Call,
    Client,
    Invalid,
    Refused,
    Reply,
    Retry,
    Unavailable,
    Undecided,
)
from gpucredits.client.methods import Paged
from gpucredits.client.trust import shown_by
from gpucredits.core.duration import format_seconds

Answer = TypeVar("Answer")
Page = TypeVar("Page", bound=Paged)
Given = ParamSpec("Given")

URL_DEFAULT: Final = "http://127.0.0.1:8437"
_BOUND: Final = re.compile(r"(must be at (?:most|least)) (\d+)")
DRY_RUN: Final = "Dry run: nothing was changed."
KEY_FILE: Final = "admin.key"
ADVICE_S: Final = 10.0  # how long a refusal may take to be explained


class Write(TypedDict):
    """The options of every write, as calls take them."""

    key: str | None
    dry_run: bool


class PageAt(TypedDict):
    """Which page of a list, as calls take it."""

    limit: int | None
    cursor: str | None


class ServerTerms(TypedDict):
    """What a client needs to know of its server."""

    url: str
    key: str
    ca_file: str | None
    cert_file: str | None
    cert_key_file: str | None
    timeout_s: float


class Session:
    """The options of one run of a command, and a client made from them when it is needed."""

    def __init__(
        self,
        *,
        url: str | None,
        key: str | None,
        data_dir: Path | None,
        as_json: bool,
        timeout_ms: int,
        ca_file: Path | None = None,
        cert_file: Path | None = None,
        cert_key_file: Path | None = None,
    ) -> None:
        self.as_json = as_json
        self._url = url
        self._key = key
        is_local = data_dir is None and not key and DATA_DIR_DEFAULT.is_dir()
        self._data_dir = DATA_DIR_DEFAULT if is_local else data_dir
        self._timeout_ms = timeout_ms
        self._ca_file = ca_file
        self._cert_file = cert_file
        self._cert_key_file = cert_key_file

    def client(self, retry: Retry | None = None) -> Client:
        """A client for the server that the options, the environment or a data directory name."""
        server = self.server()
        retry = retry or Retry(deadline_s=server["timeout_s"])
        shown = shown_by(server["cert_file"], server["cert_key_file"])
        ca_file = server["ca_file"]
        return Client(server["url"], server["key"], retry=retry, ca_file=ca_file, shown=shown)

    def server(self) -> ServerTerms:
        """Where the server is, the key for it, and how long to go on asking."""
        own = address_in_use(self._data_dir)
        url = self._url or own or URL_DEFAULT
        return ServerTerms(
            url=url,
            key=self._key or self._own_key(url, own),
            ca_file=None if self._ca_file is None else str(self._ca_file),
            cert_file=None if self._cert_file is None else str(self._cert_file),
            cert_key_file=None if self._cert_key_file is None else str(self._cert_key_file),
            timeout_s=self._timeout_ms / 1_000,
        )

    def elsewhere(self) -> str:
        """A hint at the server of this directory, if the caller's key went to the usual address.

        Only a hint: a file that happens to lie there is no reason to send a key to its address.
        """
        own = None if self._url or self._data_dir else address_in_use(DATA_DIR_DEFAULT)
        if own in (None, URL_DEFAULT):
            return ""
        return f"A server of {DATA_DIR_DEFAULT} listens at {own}: give --url or --data-dir."

    def hint(self, refused: Refused) -> str:
        """What people may try after a refusal; scripts get the server's answer alone."""
        if self.as_json:
            return ""
        if refused.problem.reason != "unauthenticated":
            return advice(refused, lambda: self.client(Retry(attempts_max=1, deadline_s=ADVICE_S)))
        sent = f"{self.server()['url']} does not know the key of {self._key_place()}."
        return f"{sent} {self.elsewhere()}".strip()

    def _key_place(self) -> str:
        """Where the key came from that is sent."""
        if not self._key:
            return str((self._data_dir or DATA_DIR_DEFAULT) / KEY_FILE)
        context = click.get_current_context(silent=True)
        source = None if context is None else context.get_parameter_source("key")
        return "GPUCREDITS_API_KEY" if source is ParameterSource.ENVIRONMENT else "--key"

    def _own_key(self, url: str, own: str | None) -> str:
        """The admin key of the data directory, which only the server that runs on it may see."""
        key = key_in(self._data_dir)
        if not key:
            raise click.UsageError(
                "No API key: give --key, set GPUCREDITS_API_KEY, or name a local server's data "
                "directory with --data-dir."
            )
        if own is not None and url.rstrip("/") == own.rstrip("/"):
            return key
        if self._url is None:
            raise Unavailable(
                f"no server runs on {self._data_dir}: start one with gpucredits serve, or give "
                "--url and --key"
            )
        server = "none runs now" if own is None else f"at {own}"
        raise click.UsageError(
            f"No API key for {url}: the one in {self._data_dir} is for the server of that "
            f"directory only ({server}). Give --key or set GPUCREDITS_API_KEY."
        )

    def run(self, call: Call[Answer], show: Callable[[Answer], None]) -> None:
        """Make a call, and print its answer as JSON or as ``show`` does."""
        with self.client() as client:
            self.print(client.fetch(call), show, is_dry="dry_run" in call.query)

    def dated(self, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a command, with instants in place of times relative to now.

        It is the server's now: its clock decides what has begun and what is over.
        """
        if not any(isinstance(value, values.FromNow) for value in given.values()):
            return given
        with self.client() as client:
            now = datetime.fromisoformat(client.clock().now)
        return {
            name: value.at(now) if isinstance(value, values.FromNow) else value
            for name, value in given.items()
        }

    def print(
        self, reply: Reply[Answer], show: Callable[[Answer], None], *, is_dry: bool = False
    ) -> None:
        """Print an answer as JSON or as ``show`` does; a dry run says that it is one."""
        if is_dry:  # the answer for scripts stays as it came
            click.echo(DRY_RUN, err=self.as_json)
        if self.as_json:
            output.print_json(reply.body)
        else:
            show(reply.value)

    def run_pages(
        self,
        call: Call[Page],
        show: Callable[[Page], None],
        *,
        items: str | tuple[str, ...],
        follow: bool,
    ) -> Page:
        """As ``run``, for a list: one page, or with ``follow`` all of them as if they were one.

        ``items`` names the list of a page, or its lists. The page that is shown is returned.
        """
        lists = (items,) if isinstance(items, str) else items
        with self.client() as client:
            replies = [client.fetch(call)]
            while follow and (cursor := replies[-1].value.next_cursor):
                replies.append(client.fetch(call.at(cursor)))
        page = replies[0].value
        if len(replies) == 1:
            self.print(replies[0], show)
        else:
            whole = b"" if not self.as_json else merged(replies, lists)
            for name in lists:
                setattr(page, name, [item for r in replies for item in getattr(r.value, name)])
            page.next_cursor = None
            if self.as_json:
                output.print_json(whole)
            else:
                show(page)
        if not self.as_json and page.next_cursor and not follow:
            output.say(f"There is more: --all, or --cursor {page.next_cursor}", err=True)
        return page


def merged(replies: Sequence[Reply[Any]], lists: Sequence[str]) -> bytes:
    """Several pages as one page of the same shape, item by item as they came."""
    raw = msgspec.json.Decoder(dict[str, msgspec.Raw])
    listed = msgspec.json.Decoder(list[msgspec.Raw])
    pages = [raw.decode(reply.body) for reply in replies]
    everything = {
        name: [item for page in pages for item in listed.decode(page[name])] for name in lists
    }
    return msgspec.json.encode({**pages[0], **everything, "next_cursor": None})


def address_in_use(data_dir: Path | None) -> str | None:
    """The address of the server that runs on a data directory."""
    try:
        return None if data_dir is None else address_in(data_dir)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def key_in(data_dir: Path | None) -> str | None:
    """The admin key that the first start of a server left in its data directory."""
    if data_dir is None:
        return None
    path = data_dir / KEY_FILE
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        raise click.UsageError(
            f"There is no {KEY_FILE} in {data_dir}: has a server run there?"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} cannot be read: {error}") from error


def calls(command: Callable[Concatenate[Session, Given], None]) -> Callable[..., None]:
    """Give a command the options of every command, and a session made from them."""

    @functools.wraps(command)
    def with_session(
        *args: Any,
        url: str | None,
        key: str | None,
        data_dir: Path | None,
        as_json: bool,
        timeout_ms: int,
        ca_file: Path | None,
        cert_file: Path | None,
        cert_key_file: Path | None,
        **given: Any,
    ) -> None:
        session = Session(
            url=url,
            key=key,
            data_dir=data_dir,
            as_json=as_json,
            timeout_ms=timeout_ms,
            ca_file=ca_file,
            cert_file=cert_file,
            cert_key_file=cert_key_file,
        )
        try:
            command(session, *args, **session.dated(given))
        except Invalid as error:
            raise _misused(error) from error
        except Refused as refused:
            text = _told(refused.problem.field or "", str(refused))
            raise Declined(refused, text=text, hint=session.hint(refused)) from refused
        except Undecided as error:
            raise Undone(error, hint=session.elsewhere()) from error

    for option in reversed(SERVER_OPTIONS):
        with_session = option(with_session)
    return with_session


def _misused(error: Invalid) -> click.UsageError:
    """The usage error for a value that can never be right; it names the option."""
    text, option = _told(error.field, str(error)), option_of(error.field)
    context = click.get_current_context(silent=True)
    if option is None:
        return click.UsageError(text, context)
    return click.BadOptionUsage(option, text, context)


def _told(field: str, text: str) -> str:
    """What is wrong with a field of a request; it names the option that gave the field."""
    text = text if text.endswith(".") else f"{text}."
    option = option_of(field)
    if option is None:
        return text
    if field.endswith("_seconds"):
        text = _BOUND.sub(lambda found: f"{found[1]} {format_seconds(int(found[2]))}", text)
    return text.replace(f"{field}: ", f"{option}: ", 1)


def option_of(field: str) -> str | None:
    """The option or argument of the command being run that gives a field of its request."""
    context = click.get_current_context(silent=True)
    names = {field, field.replace("_seconds", "_ms"), field.removesuffix("_id")}
    for param in context.command.params if field and context else ():
        if param.name in names:
            is_option = isinstance(param, click.Option)
            return max(param.opts, key=len) if is_option else param.human_readable_name
    return None


def writes(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that changes something its options; they arrive as ``write``."""

    @click.option(
        "--idempotency-key", help="Do it once for this key, however often the command is run."
    )
    @click.option("--dry-run", is_flag=True, help="Show what the answer would be; change nothing.")
    @functools.wraps(command)
    def with_write(*args: Any, idempotency_key: str | None, dry_run: bool, **given: Any) -> None:
        command(*args, write=Write(key=idempotency_key, dry_run=dry_run), **given)

    return calls(with_write)


def pages(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that lists something its options; they arrive as ``page`` and ``follow``."""

    @click.option("--limit", type=click.IntRange(1, 1_000), help="Rows on a page.")
    @click.option("--cursor", help="Start at this page: the next_cursor of the one before.")
    @click.option("--all", "follow", is_flag=True, help="Follow the pages to the end.")
    @functools.wraps(command)
    def with_page(
        *args: Any, limit: int | None, cursor: str | None, follow: bool, **given: Any
    ) -> None:
        command(*args, page=PageAt(limit=limit, cursor=cursor), follow=follow, **given)

    return calls(with_page)
