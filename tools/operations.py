"""Write what follows from the route table: the client's calls, and the table of paths in the docs.

    python tools/operations.py            write both
    python tools/operations.py --check    say what is out of date, and write nothing

Owns: how a route and its wire shapes become a method of the client. A parameter is positional if
the route's ``client`` names it; every other field of query or body is a keyword.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import textwrap
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import getsource
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct, UnsetType

from gpucredits.api.http.call import NoQuery, Route, is_union
from gpucredits.api.routes import routes
from gpucredits.wire import scalars

ROOT = Path(__file__).resolve().parent.parent
CALLS = ROOT / "src" / "gpucredits" / "client" / "calls.py"
OPERATIONS = CALLS.with_name("operations.py")
PAGE = ROOT / "docs" / "api.md"

PATH_NAMES = {"account": "account", "budget": "name", "gpu_type": "gpu_type", "region": "region"}
DEFAULTS = {"region": '"default"', "name": "NAME_DEFAULT"}  # of parameters that stand in paths
LISTS = {  # named otherwise than the field of the page
    "usage_page": {"paid_groups": "paid", "used_leases": "leases"},
    "org_clock_page": {"org_clocks": "orgs"},
}
SCALARS = {
    scalars.Credits: "Number",
    scalars.Amount: "Number",
    scalars.HourPrice: "Number",
    scalars.GpuAmount: "Number",
    scalars.GpuCount: "Number",
    scalars.Instant: "When",
    scalars.Metadata: "Mapping[str, str]",
    scalars.MetadataFilter: "Mapping[str, str]",
    scalars.MetadataChange: "Mapping[str, str | None]",
    bool: "bool",
    int: "int",
}
TEXTS = {"enqueue": "Ask for a lease, and wait for capacity, credits or quota if need be."}
SETTING = "Terms that are not given stay as they are; ``replace`` replaces all terms."
CLEARING = "``clear`` names terms that go back to their defaults."
HEAD = '''\
"""Every call of the client. Written by tools/operations.py; not by hand.

The route table of the server and the shapes of the wire say what is here. A call has the fields of
its request as parameters.
"""

# ruff: noqa: A002, PLC0414, PLR0913  # the names and fields of the wire; every call is here

from __future__ import annotations

'''
METHODS = '''\
"""Every method of the clients. Written by tools/operations.py; not by hand."""

from __future__ import annotations

from gpucredits.client import calls
from gpucredits.client.methods import Listing, Operation

__all__ = ["Listing", "Operation", "Operations"]


class Operations:
    """What can be asked of a server. Methods named after things in the plural follow all pages."""

'''


@dataclass(frozen=True)
class Method:
    """A method of the client: its name, its parameters, and the routes that serve it.

    ``renamed`` has the wire's names of parameters that are called otherwise, ``fixed`` what is
    always sent, ``unpacked`` the TypedDict that has the other fields. ``is_adapted``: the call is
    written by hand in ``client/adapters.py``.
    """

    name: str
    positional: tuple[str, ...]
    renamed: Mapping[str, str]
    fixed: Mapping[str, str]
    unpacked: str
    is_adapted: bool
    routes: tuple[Route, ...]

    @property
    def route(self) -> Route:
        """The route whose text and shape the method has: of two, the one that changes."""
        return next((each for each in self.routes if each.method == "PATCH"), self.routes[0])


def main() -> None:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if out of date")
    is_check = parser.parse_args().check
    stale = {path: text for path, text in written().items() if path.read_text() != text}
    for path, text in stale.items():
        sys.stdout.write(f"{path.relative_to(ROOT)} does not follow the route table\n")
        if not is_check:
            path.write_text(text)
    sys.exit(1 if is_check and stale else 0)


def written() -> dict[Path, str]:
    """What each file has to hold."""
    table = routes(has_test_clock=True)
    head, title, section = PAGE.read_text().partition("\n## All paths\n")
    told = re.sub(r"(?m)(^\| `/.*\n)+", lambda _: "".join(path_rows(table)), section, count=1)
    listed = list(methods(table))
    return {
        CALLS: formatted(calls_source(listed), CALLS),
        OPERATIONS: formatted(operations(listed), OPERATIONS),
        PAGE: head + title + told,
    }


def path_rows(table: Iterable[Route]) -> list[str]:
    """The table of all paths."""
    by_path: dict[str, list[str]] = {}
    for route in table:
        by_path.setdefault(route.path, []).append(f"`{route.method}` {route.summary}")
    rows = [f"| `{path}` | {'; '.join(told)} |\n" for path, told in by_path.items()]
    return sorted(row.replace("``", "`") for row in rows)


def calls_source(listed: Sequence[Method]) -> str:
    """The module of calls."""
    names = Names()
    own = [method for method in listed if not method.is_adapted]
    parts = [*reserve_fields(own, names), *(function(method, names) for method in own)]
    adapted = [f"{method.name} as {method.name}" for method in listed if method.is_adapted]
    names.by_module["gpucredits.client.adapters"] = set(adapted)
    return HEAD + names.imports() + "\n\n" + "\n\n".join(parts)


def formatted(source: str, path: Path) -> str:
    """The source as the formatter writes it."""
    program = Path(sys.executable).with_name("ruff")
    for command in (["check", "--fix", "--select", "I"], ["format"]):
        source = subprocess.run(  # noqa: S603  # the project's own formatter
            [str(program), *command, "--quiet", "--stdin-filename", str(path), "-"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
    return source


def methods(table: Iterable[Route]) -> Iterator[Method]:
    """The methods of the client in the order of the table; PATCH and PUT of one name are one."""
    served: dict[str, list[Route]] = {}
    for route in table:
        for spec in filter(None, route.client.split("; ")):
            served.setdefault(spec, []).append(route)
    for spec, found in served.items():
        name, _, told = spec.removesuffix(")").partition("(")
        words = [word for word in told.split(", ") if word]
        plain = [word for word in words if not word.startswith("**") and "=" not in word]
        yield Method(
            name=name,
            positional=tuple(word.partition(":")[0] for word in plain),
            renamed=dict(word.split(":") for word in plain if ":" in word),
            fixed=dict(word.split("=") for word in words if "=" in word),
            unpacked=next((word[2:] for word in words if word.startswith("**")), ""),
            is_adapted="(" not in spec,
            routes=tuple(found),
        )


class Names:
    """What the written module has to import."""

    def __init__(self) -> None:
        self.by_module: dict[str, set[str]] = {}

    def use(self, module: str, name: str) -> str:
        """Import a name, and write it."""
        self.by_module.setdefault(module, set()).add(name)
        return name

    def imports(self) -> str:
        """The lines; the formatter sorts them."""
        return "\n".join(
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in self.by_module.items()
        )

    def shape(self, kind: type) -> str:
        """The name of a struct of the wire."""
        return self.use(kind.__module__, kind.__name__)

    def hint(self, kind: Any) -> str:
        """The type of a parameter, for a type of the wire."""
        if is_union(kind):
            kinds = [each for each in get_args(kind) if each not in (NoneType, UnsetType)]
            return " | ".join(self.hint(each) for each in kinds)
        if get_origin(kind) is Literal:
            return self._literal(kind)
        if get_origin(kind) is list:
            self.use("collections.abc", "Sequence")
            return f"Sequence[{self.hint(get_args(kind)[0])}]"
        if isinstance(kind, type) and issubclass(kind, Struct):
            self.use("collections.abc", "Mapping")
            hints = typing.get_type_hints(kind).values()
            kinds = {each for hint in hints for each in get_args(hint) or (hint,)}
            is_counts = kinds <= {int, NoneType, UnsetType}
            return f"Mapping[str, {'int' if is_counts else self.use('typing', 'Any')}]"
        text = SCALARS.get(kind, "str")
        if text in ("Number", "When"):
            self.use("gpucredits.client.call", text)
        if text.startswith("Mapping"):
            self.use("collections.abc", "Mapping")
        return text

    def _literal(self, kind: Any) -> str:
        """The name that a module of the wire gives to some words, or the words."""
        for module in [*sys.modules.values()]:
            if not module.__name__.startswith("gpucredits.wire."):
                continue
            for name, value in vars(module).items():
                if name.endswith("Name") and value == kind and f"\n{name} = " in getsource(module):
                    return self.use(module.__name__, name)
        self.use("typing", "Literal")
        return f"Literal[{', '.join(repr(word) for word in get_args(kind))}]"


def parameters(method: Method, names: Names) -> tuple[list[str], list[str], str]:
    """(positional, keyword-only) parameters as they are written, and the path with their names."""
    route = method.route
    wire_names = {wire: own for own, wire in method.renamed.items()}
    hints: dict[str, str] = {}
    path = route.path
    for each in re.findall(r"\{(\w+)\}", route.path):
        name = wire_names.get(each) or PATH_NAMES.get(each, f"{each}_id")
        path = path.replace(f"{{{each}}}", f"{{{name}}}")
        default = f" = {DEFAULTS[name]}" if name in DEFAULTS else ""
        hints[name] = f"str{default}" if name in method.positional else "str | None = None"
        if "NAME_DEFAULT" in hints[name]:
            names.use("gpucredits.wire.limits.budget", "NAME_DEFAULT")
    kind = route.body or route.query
    if kind is not NoQuery and not method.unpacked:
        hints |= fields_of(kind, names, wire_names)
    elif method.unpacked:
        hints["account"] = "str"
    positional = [f"{name}: {hints.pop(name)}" for name in method.positional]
    return positional, [f"{name}: {hint}" for name, hint in hints.items()], path


def fields_of(kind: type[Struct], names: Names, wire_names: Mapping[str, str]) -> dict[str, str]:
    """Type and default of a parameter for each field of a shape; a page's place comes last."""
    told: dict[str, str] = {}
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    paging = ["cursor", "limit"] if "cursor" in fields else []
    for name in [*(name for name in fields if name not in paging), *paging]:
        text = names.hint(hints[name])
        told[wire_names.get(name, name)] = (
            text if fields[name].required else f"{text} | None = None"
        )
    return told


def function(method: Method, names: Names) -> str:
    """The function that makes the call of a method."""
    route = method.route
    positional, keywords, path = parameters(method, names)
    is_setting = len(method.routes) > 1
    answer = route.other_answers[0][1] if method.fixed else route.answer
    if is_setting:
        keywords.append("replace: bool = False")
        if can_clear(route):
            names.use("collections.abc", "Sequence")
            keywords.append("clear: Sequence[str] = ()")
    if route.needs_key:
        keywords.append("key: str | None = None")
    if route.is_write and not method.fixed:
        keywords.append("dry_run: bool = False")
    told = [*positional, *(["*"] if keywords else []), *keywords]
    if method.unpacked:
        told.append(f"**fields: {names.use('typing', 'Unpack')}[{method.unpacked}]")
    returned = f"{names.use('gpucredits.client.call', 'Call')}[{names.shape(answer)}]"
    return (
        f"def {method.name}({', '.join(told)}) -> {returned}:\n"
        f"{doc(method, is_setting=is_setting)}\n"
        f"    return {made(method, path, answer, names)}\n"
    )


def can_clear(route: Route) -> bool:
    """Whether some term of a change has a default to go back to."""
    return any(NoneType in get_args(hint) for hint in typing.get_type_hints(route.body).values())


def made(method: Method, path: str, answer: Any, names: Names) -> str:
    """The expression that makes the call."""
    route = method.route
    given = "locals()"
    if method.fixed:
        fixed = ", ".join(f'"{name}": {value}' for name, value in method.fixed.items())
        given = f"{{**locals(), {fixed}}}"
    told = [f'"{path}"', names.shape(answer), given]
    if len(method.routes) > 1:
        whole = next(each for each in method.routes if each.method == "PUT")
        assert route.body is not None and whole.body is not None  # noqa: PT018
        told += [f"change={names.shape(route.body)}", f"whole={names.shape(whole.body)}"]
        return f"{names.use('gpucredits.client.call', 'change')}({', '.join(told)})"
    if route.body is not None and route.body.__struct_fields__:
        told.append(f"shape={names.shape(route.body)}")
    if route.method == "GET":
        return f"{names.use('gpucredits.client.call', 'read')}({', '.join(told)})"
    if route.is_question:
        return f"{names.use('gpucredits.client.call', 'question')}({', '.join(told)})"
    if route.method != "POST":
        told.append(f'method="{route.method}"')
    if not route.needs_key:
        told.append("is_keyed=False")
    return f"{names.use('gpucredits.client.call', 'write')}({', '.join(told)})"


def doc(method: Method, *, is_setting: bool) -> str:
    """The text of a method: its route's, and how settings are set."""
    first, _, more = (TEXTS.get(method.name) or method.route.text).partition("\n")
    paragraphs = [more.strip()] if more.strip() else []
    if is_setting:
        paragraphs.append(f"{SETTING} {CLEARING}" if can_clear(method.route) else SETTING)
    if not paragraphs:
        return f'    """{first}"""'
    wrapped = [textwrap.fill(" ".join(each.split()), 95) for each in paragraphs]
    return textwrap.indent('"""' + "\n\n".join([first, *wrapped]) + '\n"""', "    ")


def reserve_fields(listed: Iterable[Method], names: Names) -> Iterator[str]:
    """The fields of a reserve, which three methods take, and those of one that waits."""
    shape = next(method.route.body for method in listed if method.unpacked)
    assert shape is not None
    told = fields_of(shape, names, {})
    names.use("typing", "TypedDict")
    waiting = {name: told.pop(name) for name in ("deadline", "gang", "gang_size")}
    del told["account"], told["wait"]
    text = "What may be said of a job that wants a lease."
    yield typed_dict("ReserveFields(TypedDict, total=False)", text, told, names)
    text = "What may be said of a job that waits: until when, and with whom it starts."
    yield typed_dict("EnqueueFields(ReserveFields, total=False)", text, waiting, names)


def typed_dict(head: str, text: str, fields: Mapping[str, str], names: Names) -> str:
    """A TypedDict of parameters; those without a default are required."""
    lines = [f"class {head}:", f'    """{text}"""', ""]
    for name, told in fields.items():
        hint, _, default = told.partition(" = ")
        if not default:
            hint = f"{names.use('typing', 'Required')}[{hint}]"
        lines.append(f"    {name}: {hint}")
    return "\n".join(lines) + "\n"


def operations(listed: Iterable[Method]) -> str:
    """The class whose methods make the calls; a page also has an iterator over all pages."""
    lines = []
    for method in listed:
        name = method.name
        lines.append(f"    {name} = Operation(calls.{name})")
        if name.endswith("_page"):
            field = list_field(method.route)
            lines += [
                f"    {own} = Listing(calls.{name}, lambda page: page.{field})"
                for own, field in LISTS.get(name, {field: field}).items()
            ]
    return METHODS + "\n".join(lines) + "\n"


def list_field(route: Route) -> str:
    """The field of a page that has its items."""
    hints = typing.get_type_hints(route.answer)
    return next(name for name, hint in hints.items() if get_origin(hint) is list)


if __name__ == "__main__":
    main()
