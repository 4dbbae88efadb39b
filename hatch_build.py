"""A wheel of gpucredits with compiled rules, where GPUCREDITS_COMPILE=1 asks for one.

Without it the wheel holds sources only and runs anywhere. Which modules are compiled, and how, is
in tools/compile.py.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WANTED = os.environ.get("GPUCREDITS_COMPILE") == "1"


class CompileHook(BuildHookInterface[Any]):
    """Puts the extensions into the wheel, and says for which Python it is."""

    PLUGIN_NAME = "custom"
    had_record = False

    def dependencies(self) -> list[str]:
        """What it takes to compile: the compiler, and the packages whose types the sources use."""
        return ["mypy>=1.15", "setuptools", *self.libraries()] if WANTED else []

    def libraries(self) -> list[str]:
        """What the server needs."""
        extras = self.metadata.core.optional_dependencies
        return [each for each in extras["server"] + extras["cli"] if "gpucredits" not in each]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless it is an editable installation or nobody has asked for it."""
        if not WANTED or version == "editable" or self.target_name != "wheel":
            return
        self.had_record = (Path(self.root) / "src/gpucredits/compiled.txt").exists()
        sys.path.insert(0, str(Path(self.root) / "tools"))
        import compile as compiling  # noqa: PLC0415  # of tools/, which is no package

        compiling.compile_all()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for path in compiling.extensions():
            build_data["force_include"][str(path)] = str(path.relative_to(compiling.SOURCES))

    def finalize(self, version: str, _build_data: dict[str, Any], _artifact_path: str) -> None:
        """Leave the sources as they were; where they were compiled they are now compiled anew."""
        if WANTED and version != "editable" and self.target_name == "wheel":
            import compile as compiling  # noqa: PLC0415

            if not self.had_record:
                compiling.clean()
