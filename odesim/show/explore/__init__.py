"""Self-contained interactive page of runs, a sweep or a comparison: curves with choice, zoom and hover."""

import os
from pathlib import Path
from typing import Any

from derivations.drawing import COLOURED, PALETTE
from odesim.errors import MissingError
from odesim.show import writing
from odesim.show.explore.packing import packed
from odesim.show.explore.page_content import Content
from odesim.show.explore.shown import content

__all__ = ["Content", "content", "page", "write"]


def write(source: Any, out: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write the page of `source` (see `content`) to the file `out`, atomically. Return its path.

    Raises `UsageError` for anything else and for an existing `out` without `overwrite`, and `MissingError` if plotly is
    not installed.
    """
    return writing.write(lambda: page(source), out, overwrite, "page")


def page(source: Any) -> str:
    """Return the page as HTML: the plotting library, the data, and the controls."""
    from odesim.store.files import jsonable
    from odesim.version import __version__

    library = _library()
    page_content = content(source)
    data, thinned = packed(page_content)
    page_data = {**data, "palette": PALETTE[:COLOURED], "thinned": thinned}
    template = writing.environment().get_template("explore.html")
    return template.render(
        content=page_content,
        data=jsonable(page_data),
        thinned=thinned,
        library=library,
        version=__version__,
        sweep=page_content.swept,
    )


def _library() -> Any:
    """Return the text of plotly.js. Raises `MissingError` if the package plotly is not installed."""
    from markupsafe import Markup

    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise MissingError("explore needs plotly, which is not installed: pip install 'odesim[explore]'") from None
    return Markup(get_plotlyjs())
