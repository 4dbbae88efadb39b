"""What the product is made of can be checked offline, listed, and built to the same bytes."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
BUILT = ("src", "bench", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE")
EPOCH = "1700000000"
LEAKY: dict[str, Any] = {
    "id": "OSV-1",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "H11"},
            "ranges": [
                {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "0.16.0"}]},
                {"type": "ECOSYSTEM", "events": [{"introduced": "2.0"}]},
                {
                    "type": "ECOSYSTEM",
                    "events": [{"introduced": "1.0"}, {"last_affected": "1.2"}],
                },
            ],
        },
        {"package": {"ecosystem": "npm", "name": "h11"}, "versions": ["1"]},
    ],
}


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """tools/audit.py, which is no part of a package."""
    monkeypatch.syspath_prepend(str(TOOLS))
    before = set(sys.modules)
    yield importlib.import_module("audit")
    for name in set(sys.modules) - before & {"audit", "locked"}:
        del sys.modules[name]


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a tool of this repository."""
    command = [sys.executable, str(TOOLS / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_packages_have_licences_that_are_allowed() -> None:
    """Every installed package of the lock file has a licence on the allow list."""
    done = run("audit.py")
    assert done.returncode == 0, done.stdout
    assert "packages are installed here and were checked" in done.stdout


def test_a_snapshot_that_proves_nothing_says_so(tool: ModuleType) -> None:
    """One that was never taken, or long ago, is no check; a new one without findings is."""
    today = date(2026, 2, 1)
    empty: dict[str, Any] = {"taken_on": None, "documents": 0, "advisories": []}
    assert "could not check: the snapshot is empty" in tool.doubts(empty, today)
    old = {"taken_on": "2025-12-31", "documents": 9, "advisories": [LEAKY]}
    assert "could not check: the snapshot knows advisories up to 2025-12-31" in tool.doubts(
        old, today
    )
    fresh = {"taken_on": "2026-01-31", "documents": 9, "advisories": []}
    assert tool.doubts(fresh, today) == ""


def test_a_snapshot_is_made_of_what_an_operator_downloads(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OSV's export and pip-audit's report; its date is that of the files, not of the refresh."""
    monkeypatch.setattr(tool, "SNAPSHOT", tmp_path / "advisories.json")
    packages = [tool.Package("h11", "0.15.9"), tool.Package("click", "8.1")]
    export = tmp_path / "all.zip"
    with zipfile.ZipFile(export, "w") as archive:
        for number, modified in enumerate(("2025-03-01T10:00:00Z", "2025-03-04T23:00:00Z")):
            document = LEAKY | {"id": f"OSV-{number}", "modified": modified}
            archive.writestr(f"{number}.json", json.dumps(document))
    tool.refresh(packages, export, None)
    snapshot = json.loads(tool.SNAPSHOT.read_text())
    assert (snapshot["taken_on"], snapshot["documents"]) == ("2025-03-04", 2)
    assert len(tool.vulnerable(packages, snapshot["advisories"])) == 2
    report = tmp_path / "report.json"
    found = {"name": "h11", "version": "0.15.9", "vulns": [{"id": "PYSEC-1"}]}
    clean = {"name": "click", "version": "8.1", "vulns": []}
    skipped = {"name": "nowhere", "skip_reason": "not on an index"}
    report.write_text(json.dumps({"dependencies": [found, clean, skipped]}))
    with pytest.raises(ValueError, match="--taken-on"):
        tool.refresh(packages, report, None)
    tool.refresh(packages, report, date(2025, 3, 5))
    snapshot = json.loads(tool.SNAPSHOT.read_text())
    assert (snapshot["taken_on"], snapshot["documents"]) == ("2025-03-05", 2)
    assert [line.split(": ")[0] for line in tool.vulnerable(packages, snapshot["advisories"])] == [
        "h11 0.15.9"
    ]


def test_what_cannot_be_used_leaves_the_snapshot(tmp_path: Path) -> None:
    """A folder without advisories, and a file that is none, change nothing and say so."""
    before = (TOOLS / "advisories.json").read_bytes()
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"no zip")
    for source in (tmp_path / "absent", broken, tmp_path):
        done = run("audit.py", "--refresh", str(source))
        assert (done.returncode, "The snapshot is as it was." in done.stdout) == (1, True)
        assert done.stderr == ""
    assert (TOOLS / "advisories.json").read_bytes() == before


@pytest.mark.parametrize(
    ("version", "is_found"),
    [("0.15.9", True), ("0.16.0", False), ("1.2", True), ("1.2.1", False), ("2.0", True)],
)
def test_an_advisory_names_the_versions_it_is_about(
    tool: ModuleType, version: str, is_found: bool
) -> None:
    """Control: a locked version within an advisory's range is found, one outside is not."""
    advisories = list(tool.entries(LEAKY))
    assert [each["package"] for each in advisories] == ["h11"]
    packages = [tool.Package("h11", version)]
    assert bool(tool.vulnerable(packages, advisories)) is is_found


@pytest.mark.parametrize(
    ("licence", "is_allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND Apache-2.0", True),
        ("MIT AND GPL-3.0-only", False),
    ],
)
def test_licences_are_compared_part_by_part(
    tool: ModuleType, licence: str, is_allowed: bool
) -> None:
    """Control: a licence that is not on the list is refused, unless there is a choice."""
    assert tool.is_allowed(licence) is is_allowed


def test_the_bill_of_materials_lists_every_locked_package() -> None:
    """Each package of requirements.lock is there with its version and hashes, always the same."""
    first, second = run("sbom.py"), run("sbom.py")
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    bill = json.loads(first.stdout)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    listed = {f"{each['name']}=={each['version']}" for each in bill["components"]}
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pinned = {line.split()[0].split(";")[0] for line in lock if "==" in line and line[0] != " "}
    assert {each.lower().replace("_", "-") for each in pinned} == listed
    assert all(each["properties"] for each in bill["components"])
    scopes = {each["name"]: each["scope"] for each in bill["components"]}
    assert (scopes["h11"], scopes["ruff"]) == ("required", "excluded")


def test_two_builds_give_the_same_wheel(tmp_path: Path) -> None:
    """Copies of the sources with other times and modes are built to the same bytes."""
    pytest.importorskip("hatchling", reason="hatchling, which builds wheels, is not installed")
    digests = [build(tmp_path / name, mask) for name, mask in (("a", 0o022), ("b", 0o077))]
    assert digests[0] == digests[1]


def build(folder: Path, mask: int) -> str:
    """Copy what a wheel is made of, with fresh times, and build it; the wheel's hash."""
    sources = folder / "sources"
    before = os.umask(mask)
    try:
        for name in BUILT:
            copy(ROOT / name, sources / name)
    finally:
        os.umask(before)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    environment.pop("GPUCREDITS_COMPILE", None)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(
        command, cwd=sources, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "gpucredits/store/verify/rules.py" in archive.namelist()
        assert not [name for name in archive.namelist() if "bench" in name]
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def copy(source: Path, target: Path) -> None:
    """Copy contents only: neither times nor modes; what was compiled stays behind."""
    if source.is_dir():
        target.mkdir(parents=True)
        for each in source.iterdir():
            if each.suffix != ".so" and each.name not in ("__pycache__", "compiled.txt"):
                copy(each, target / each.name)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
