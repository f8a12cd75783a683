"""Single-file pages: their templates, and atomic writing."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from odesim.errors import StorageError, UsageError
from odesim.store.files import replacing


def write(page: Callable[[], str], out: str | os.PathLike[str], overwrite: bool, what: str) -> Path:
    """Write a page to the file `out`, atomically. Return its path.

    Raises `UsageError`, before the page is made, for an `out` that is a folder, has no parent folder, or exists without
    `overwrite`.
    """
    target = Path(out)
    if target.is_dir():
        raise UsageError(f"{target} is a folder, but the {what} is a single file; give the name of a file")
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists; --overwrite replaces it, or choose another name")
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent} does not exist, so {target} cannot be written; create the folder first")
    text = page()
    try:
        with replacing(target) as file:
            file.write(text.encode())
    except OSError as error:
        raise StorageError(f"{target} could not be written ({error.strerror}); choose another place") from error
    return target


def environment() -> Any:
    """Return Jinja's environment with everything escaped, except text that filters mark as safe."""
    environment = _environment(autoescape=True)
    environment.policies["json.dumps_kwargs"] = {}  # in the order of the messages
    return environment


def plain_environment() -> Any:
    """Return Jinja's environment for texts other than pages, such as programs, without escaping."""
    return _environment(keep_trailing_newline=True)


def _environment(**options: Any) -> Any:
    """Return Jinja's environment with the templates of this package, in which an unknown name is an error."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("odesim.show", "templates"), undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, **options,
    )  # fmt: skip
