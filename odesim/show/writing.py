"""Pages that are one file: the templates they are made from, and how they are written."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from odesim.errors import StorageError, UsageError
from odesim.store.files import replacing


def write(page: Callable[[], str], out: str | os.PathLike[str], overwrite: bool, what: str) -> Path:
    """Write a page to the file `out`, at once or not at all; returns its path.

    Raises `UsageError`, before the page is made, for an `out` that is a folder, lies in none, or is there without
    `overwrite`.
    """
    target = Path(out)
    if target.is_dir():
        raise UsageError(f"{target} is a folder, but the {what} is one file; give the name of one")
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
    """Jinja with everything escaped but what filters make safe themselves."""
    environment = _environment(autoescape=True)
    environment.policies["json.dumps_kwargs"] = {}  # in the order in which things were said
    return environment


def plain_environment() -> Any:
    """Jinja for texts that are no pages, such as programs: nothing is escaped."""
    return _environment(keep_trailing_newline=True)


def _environment(**options: Any) -> Any:
    """Jinja with the templates of this package, in which a name that is not there is an error."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("odesim.show", "templates"), undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, **options,
    )  # fmt: skip
