"""The packages of requirements.lock, and what their installed metadata says of each.

Must not: talk to the network.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK_FILE = ROOT / "requirements.lock"
PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)\s*(?P<marker>;[^\\]*)?")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
# How licences are called in metadata without a licence expression.
SPDX = {
    "apache 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd license": "LicenseRef-BSD",  # which of them the metadata does not say
    "bsd 2-clause license": "BSD-2-Clause",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
}


@dataclass(slots=True)
class Package:
    """A package at the version of the lock file; ``licence`` is empty where it is unknown."""

    name: str
    version: str
    marker: str = ""
    hashes: list[str] = field(default_factory=list)
    installed: str = ""
    licence: str = ""
    homepage: str = ""

    @property
    def purl(self) -> str:
        """The package's address in the form that SBOMs and advisories share."""
        return f"pkg:pypi/{canonical(self.name)}@{self.version}"


def canonical(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(path: Path = LOCK_FILE) -> list[Package]:
    """Every package of a lock file, in order, with its hashes."""
    packages: list[Package] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if pinned := PINNED.match(line):
            marker = (pinned["marker"] or "").lstrip("; ").strip()
            packages.append(Package(pinned["name"], pinned["version"], marker))
        elif packages:
            packages[-1].hashes += HASH.findall(line)
    return packages


def describe(package: Package) -> Package:
    """Add what the installed metadata says; a package that is not installed stays as it is."""
    try:
        found = distribution(package.name)
    except PackageNotFoundError:
        return package
    package.installed = found.version
    meta = found.metadata
    classifiers = [
        each.rpartition("::")[2].strip()
        for each in meta.get_all("Classifier", [])
        if each.startswith("License ::")
    ]
    expression, text = meta.get("License-Expression"), meta.get("License") or ""
    if expression:
        package.licence = expression
    elif text and "\n" not in text:
        package.licence = SPDX.get(text.lower(), text)
    elif classifiers:
        package.licence = " OR ".join(SPDX.get(each.lower(), each) for each in classifiers)
    package.homepage = meta.get("Home-page") or ""
    return package
