"""Generated pages: the build writes the gallery and the reference from the program before Sphinx reads them.

`odesim_quick` (`make docs QUICK=1`) omits SGD beside the flows; results are stored in docs/_build/kept until their
sources change.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))


def write(app: Any) -> None:
    """Write all generated pages."""
    import gallery
    import reference

    gallery.write(app.config.odesim_workers, sgd=not app.config.odesim_quick)
    reference.write()


def setup(app: Any) -> dict[str, bool]:
    """Register the extension in Sphinx."""
    app.add_config_value("odesim_quick", False, "env", bool)
    app.add_config_value("odesim_workers", 2, "", int)
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
