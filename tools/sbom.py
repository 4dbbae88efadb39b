"""Write a software bill of materials: CycloneDX 1.5 as JSON, the same bytes for the same lock file.

    python tools/sbom.py [PATH]    write it to PATH, or to standard output

Every package of requirements.lock is in it with its version, its hashes and, where the package is
installed, its licence. What the server needs at run time has scope "required", tools "excluded".
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

from locked import LOCK_FILE, ROOT, Package, canonical, describe, read_lock

NAME = re.compile(r"^\s*([A-Za-z0-9._-]+)")
VERSION = re.compile(r'^VERSION[^=]*=\s*"([^"]+)"|__version__\s*=\s*"([^"]+)"', re.MULTILINE)
EXTRAS = ("cli", "server", "redis")


def main() -> None:
    """Write the document."""
    text = json.dumps(document(), indent=1, sort_keys=True) + "\n"
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


def document() -> dict[str, Any]:
    """The bill of materials; its serial number follows from the lock file."""
    packages = [describe(package) for package in read_lock()]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = run_time(project, {canonical(package.name) for package in packages})
    serial = uuid.uuid5(uuid.NAMESPACE_URL, LOCK_FILE.read_text(encoding="utf-8"))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": project["name"],
                "version": own_version(),
                "licenses": [{"expression": project["license"]}],
                "bom-ref": project["name"],
            }
        },
        "components": [component(package, needed) for package in packages],
        "dependencies": [
            {
                "ref": project["name"],
                "dependsOn": [each.purl for each in packages if canonical(each.name) in needed],
            }
        ],
    }


def component(package: Package, needed: set[str]) -> dict[str, Any]:
    """One package."""
    shown: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.purl,
        "purl": package.purl,
        "name": canonical(package.name),
        "version": package.version,
        "scope": "required" if canonical(package.name) in needed else "excluded",
        # each hash is that of one file: a wheel for one platform, or the sources
        "properties": [
            {"name": "gpucredits:file-sha256", "value": digest} for digest in sorted(package.hashes)
        ],
    }
    if package.marker:
        shown["properties"].append({"name": "gpucredits:marker", "value": package.marker})
    if package.licence:
        shown["licenses"] = [{"expression": package.licence}]
    return shown


def run_time(project: dict[str, Any], locked: set[str]) -> set[str]:
    """The names of all packages that the service needs, directly or through others."""
    wanted = {
        canonical(found[1])
        for extra in EXTRAS
        for each in project["optional-dependencies"][extra]
        if (found := NAME.match(each))
    }
    waiting, seen = list(wanted & locked), wanted & locked
    while waiting:
        name = waiting.pop()
        try:
            below = requires(name) or []
        except PackageNotFoundError:
            continue
        for each in below:
            found = NAME.match(each)
            if found is None or "extra ==" in each:
                continue
            number = canonical(found[1])
            if number in locked and number not in seen:
                seen.add(number)
                waiting.append(number)
    return seen


def own_version() -> str:
    """The version of these sources."""
    text = (ROOT / "src" / "gpucredits" / "version.py").read_text(encoding="utf-8")
    found = VERSION.search(text)
    if found is None:
        raise SystemExit("src/gpucredits/version.py names no version")
    return found[1] or found[2]


if __name__ == "__main__":
    main()
