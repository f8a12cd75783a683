"""The lowest versions that the program allows, as constraints: `python -m tests.versions` (`make test-lowest`)."""

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("dev",)
"""The optional dependencies that the tests need."""


def lowest(project: dict[str, object]) -> list[str]:
    """`name==X.*` for every direct dependency `name>=X`, of the program and of its tests.

    The release series of the bound, so that its last mending is taken: a bound names what the program needs, not a
    release with a fault that its authors have mended since.

    >>> lowest({"dependencies": ["numpy>=2.1", "jax>=0.10.1,!=0.10.2"], "optional-dependencies": {"dev": ["rich"]}})
    ['jax==0.10.1.*', 'numpy==2.1.*']
    """
    dependencies, extras = project["dependencies"], project["optional-dependencies"]
    assert isinstance(dependencies, list)
    assert isinstance(extras, dict)
    found = set()
    for text in [*dependencies, *(text for extra in EXTRAS for text in extras.get(extra, ()))]:
        requirement = Requirement(text)
        found |= {f"{requirement.name}=={s.version}.*" for s in requirement.specifier if s.operator == ">="}
    return sorted(found)


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])) + "\n")
