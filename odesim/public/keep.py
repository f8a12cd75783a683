"""To judge and to keep: verdicts, figures, reports, and what is stored in folders."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from odesim.public.speak import chosen, speaking
from odesim.public.watch import stop, watched

if TYPE_CHECKING:
    from pathlib import Path

    from derivations.contract import System
    from odesim.evidence.verdicts import Verdicts
    from odesim.evidence.verification import Verdict


@speaking
def verify(
    system: "str | System",
    claims: "Iterable[str] | str | None" = None,
    *,
    effort: str = "quick",
    seed: int = 0,
    backend: str = "numba",
    workers: int = 1,
) -> "Verdicts[Verdict]":
    """The verdicts on the claims of a system (all of them, or that or those with the given ids); nothing is written.

    They are a list, which shows itself as a table and is kept by `.save(folder)`.  With several `workers` as many
    processes judge them, a module of claims at a time.  Raises `UsageError` for a claim that is not there.

    >>> import odesim
    >>> [(verdict.variant, verdict.answer) for verdict in odesim.verify("liao", "eq-5-sol")]
    [('printed', 'refuted'), ('corrected', 'confirmed')]
    """
    from odesim.evidence import laboratory, verification
    from odesim.evidence.verdicts import Verdicts
    from odesim.evidence.workers import judged
    from odesim.request.case import BACKENDS
    from odesim.request.parse import choice, seed_number, whole_number
    from odesim.store.verdicts import Request

    own, number = chosen(system), seed_number(seed)
    level: Any = choice(effort, verification.EFFORTS, "--effort")
    lab = laboratory.Laboratory(own, level, choice(backend, BACKENDS, "--backend"), number)
    asked = [claims] if isinstance(claims, str) else list(claims or ())
    forms = [(claim, form) for claim in verification.claims_of(own, asked) for form in claim.variants]
    crew, found = whole_number(workers, "--workers"), {}
    try:
        with watched(f"judging claims of {own.name}") as progress:
            for verdict in judged(lab, forms, crew, "local"):
                found[verdict.claim, verdict.variant] = verdict
                if progress is not None:
                    progress(len(found), len(forms))
    except KeyboardInterrupt:
        stop(f"interrupted; {len(found)} of {len(forms)} verdicts are kept", Verdicts(found.values()))
    request = Request(own, level, backend, number, tuple(asked))
    return Verdicts([found[claim.id, form.name] for claim, form in forms], request)


@speaking
def figures(
    system: str | None = None,
    only: str | None = None,
    *,
    folder: "str | os.PathLike[str] | None" = None,
    quick: bool = False,
) -> "list[Path]":
    """Draw the published figures and ours, of one system or of all, and return their files.

    Runs that they lack are made first and kept; `quick` makes smaller ones, and the captions say so.  Raises
    `MissingError` where the figures are not beside the package, `UsageError` for a figure that is not there.
    """
    from pathlib import Path

    from odesim.show import figures as maker

    return maker.make(maker.modules(system, only), Path(folder) if folder is not None else None, quick=quick)


@speaking
def report(
    folders: "Iterable[str | os.PathLike[str]] | str | os.PathLike[str]",
    out: "str | os.PathLike[str]",
    *,
    overwrite: bool = False,
) -> "Path":
    """Write verdicts, figures and runs of a folder or some on one self-contained HTML page, and return its path.

    Raises `UsageError` for a folder that holds none of these, and for a page that is there already.
    """
    from odesim.errors import UsageError
    from odesim.show import report as maker

    one = isinstance(folders, str | os.PathLike)
    some = [folders] if one else list(folders) if isinstance(folders, Iterable) else [folders]
    if not all(isinstance(folder, str | os.PathLike) for folder in some):
        raise UsageError(f"report: folders= is the path of a folder or a list of them, but {folders!r:.60} was given")
    return maker.write([os.fspath(folder) for folder in some], out, overwrite)


@speaking
def explore(what: Any, out: "str | os.PathLike[str]" = "explore.html", *, overwrite: bool = False) -> "Path":
    """Write an interactive page of a run, some runs, a comparison or a sweep, and return its path.

    `what` is what `integrate`, `simulate`, `compare`, `sweep` or `load` gave, a folder, or a list of these, drawn
    together.  A sweep has curves where it was asked for more than two `save_points`.  The page holds everything that it
    needs.  Raises `UsageError` for anything else and for a page that is there already, `MissingError` without plotly.
    """
    from odesim.show import explore as maker

    return maker.write(what, out, overwrite)


@speaking
def load(folder: "str | os.PathLike[str]") -> Any:
    """What is stored in `folder`, its file hashes verified.

    A `Run` (manifest, summary and trajectory), the `xarray.Dataset` of a sweep, the verdicts (as dictionaries) of
    `odesim verify`, or the files of `odesim figures`.  Raises `UsageError` for a folder that is missing, unfinished or
    damaged.
    """
    from odesim.public import folders

    return folders.load(folder)


@speaking
def save(result: Any, folder: "str | os.PathLike[str]", *, overwrite: bool = False, pictures: bool = True) -> "Path":
    """Store a run, a list of stages, a comparison or verdicts of this session as the command does; returns the folder.

    `load`, `odesim show`, `compare`, `report` and `after=` take it.  `pictures` draws a run's pictures beside it;
    `overwrite` replaces a finished folder.  Raises `UsageError` for anything else, and for a folder that is in use.

    >>> import odesim, tempfile
    >>> run = odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     odesim.load(odesim.save(run, place + "/run", pictures=False)).outcome.kind
    'completed'
    """
    from odesim.public import folders

    return folders.save(result, folder, overwrite=overwrite, pictures=pictures)
