"""Build what `spark-submit` ships: the package as a zip, and beside it the jobs and confs.

The zip is the same byte for byte for the same sources: names sorted, one fixed time.
"""

from __future__ import annotations

import shutil
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIXED_TIME = (1980, 1, 1, 0, 0, 0)


def build_zip(package: Path, target: Path) -> None:
    """Write ``package`` and everything in it, compiled files aside, to the zip ``target``."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(package.rglob("*")):
            if not file.is_file() or "__pycache__" in file.parts:
                continue
            entry = zipfile.ZipInfo(str(file.relative_to(package.parent)), FIXED_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes())
    unfinished.replace(target)


def main() -> int:
    """Build everything under dist/, the environment archive aside."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    dist = ROOT / "dist"
    for folder in ("jobs", "conf"):
        shutil.rmtree(dist / folder, ignore_errors=True)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, dist / folder, ignore=ignored)
    target = dist / f"corpusmill-{version}.zip"
    build_zip(ROOT / "lib" / "corpusmill", target)
    print(f"==> {target.relative_to(ROOT)}, dist/jobs, dist/conf")
    return 0


if __name__ == "__main__":
    sys.exit(main())
