"""To judge and to keep: verdicts, figures, reports, and what is stored in folders."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from odesim.public.speak import chosen, known, speaking
from odesim.public.watch import stop, watched

if TYPE_CHECKING:
    from pathlib import Path

    from derivations.claim import Claim, Variant
    from derivations.contract import System
    from odesim.evidence.check import Check
    from odesim.evidence.laboratory import Laboratory
    from odesim.evidence.verdicts import Verdicts
    from odesim.evidence.verification import Verdict

CHECK = (
    "claims", "effort", "seed", "backend", "workers", "compared", "preset", "stage", "until", "step_size", "batch",
    "seeds",
)  # fmt: skip
"""The options of `check`, which are no parameters of a system."""


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
    """Test the claims of a system against flow and SGD; nothing is written.

    Arguments:
        system: Its name, a file that declares it, or a `System`.
        claims: The id of a claim or a list of ids; by default all (`odesim verify --list` lists them).
        effort: "quick", "full" or "gpu".
        seed: Seed of every random number.
        backend: "numba" or "jax".
        workers: Number of processes, which judge a module of claims at a time.

    Returns:
        `Verdicts`, a list that is displayed as a table; `.save(folder)` stores it.

    Raises:
        UsageError: A claim that is not there.
        InterruptedRun: Ctrl-C; its `result` are the verdicts by then.

    Example:
        >>> import odesim
        >>> [(verdict.variant, verdict.answer) for verdict in odesim.verify("liao", "eq-5-sol")]
        [('printed', 'refuted'), ('corrected', 'confirmed')]
    """
    from odesim.evidence import laboratory, verification
    from odesim.evidence.verdicts import Verdicts
    from odesim.request.case import BACKENDS
    from odesim.request.parse import choice, seed_number, whole_number
    from odesim.store.verdicts import Request

    own, number = chosen(system), seed_number(seed)
    level: Any = choice(effort, verification.EFFORTS, "--effort")
    lab = laboratory.Laboratory(own, level, choice(backend, BACKENDS, "--backend"), number)
    asked = [claims] if isinstance(claims, str) else list(claims or ())
    forms = [(claim, form) for claim in verification.claims_of(own, asked) for form in claim.variants]
    found = _judged(lab, forms, whole_number(workers, "--workers"))
    return Verdicts(found, Request(own, level, backend, number, tuple(asked)))


def _judged(lab: "Laboratory", forms: "list[tuple[Claim, Variant]]", crew: int) -> "list[Verdict]":
    """Return the verdicts on some forms, in order.  Raises `InterruptedRun` at Ctrl-C, which holds those by then."""
    from odesim.evidence.verdicts import Verdicts
    from odesim.evidence.workers import judged

    found: dict[tuple[str, str], Verdict] = {}
    try:
        with watched(f"judging claims of {lab.system.name}") as progress:
            for verdict in judged(lab, forms, crew, "local"):
                found[verdict.claim, verdict.variant] = verdict
                if progress is not None:
                    progress(len(found), len(forms))
    except KeyboardInterrupt:
        stop(f"interrupted; {len(found)} of {len(forms)} verdicts are kept", Verdicts(found.values()))
    return [found[claim.id, form.name] for claim, form in forms]


@speaking
def check(
    system: "str | System",
    claims: "Iterable[str] | str | None" = None,
    *,
    effort: str = "quick",
    seed: int = 0,
    backend: str = "numba",
    workers: int = 1,
    compared: bool = True,
    preset: str | None = None,
    stage: str | None = None,
    until: Any = None,
    step_size: Any = None,
    batch: Any = None,
    seeds: Any = None,
    **parameters: Any,
) -> "Check":
    """Check a model: verdicts, grade, equations, and SGD beside the flow, as one citable object. Nothing is written.

    Arguments:
        system: Its name, a file that declares it, or a `System`.
        claims: The id of a claim or a list of ids; by default all.
        effort, seed, backend, workers: As of `verify`.
        compared: Run SGD beside the flow.
        preset, stage, until, step_size, batch, seeds, parameters: Those of SGD beside the flow; by default a setting
            that shows something within seconds.

    Returns:
        A `Check`: `.answer`, `.grade`, `.summary()`, `.record` in the form of the published schema,
        `.changes(earlier)`, and `.save(folder)`, which writes the page.

    Raises:
        UsageError: A claim that is not there, or a comparison that cannot be made.
        InterruptedRun: Ctrl-C; its `result` are the verdicts by then.

    Example:
        >>> import odesim
        >>> found = odesim.check("saad_solla_1995_step", ["below", "above"], compared=False)
        >>> found.answer, found.grade
        ('consistent', 'qualitative')
    """
    from odesim.ask import check as ask
    from odesim.evidence import check as evidence
    from odesim.evidence import laboratory, verification
    from odesim.request.parse import whole_number
    from odesim.show.check import made

    own = chosen(system)
    known(own, parameters, CHECK, "check")
    asked = ask.request(
        own, claims if isinstance(claims, str) or claims is None else list(claims), effort=effort, seed=seed,
        backend=backend, compared=compared, parameters=parameters, preset=preset, stage=stage, until=until,
        step_size=step_size, batch=batch, seeds=seeds,
    )  # fmt: skip
    of = asked.judged
    level: Any = of.effort
    lab = laboratory.Laboratory(own, level, of.backend, of.seed)
    forms = [(claim, form) for claim in verification.claims_of(own, of.claims) for form in claim.variants]
    verdicts, judged = ask.timed(lambda: _judged(lab, forms, whole_number(workers, "--workers")))
    with watched(f"SGD beside the flow of {own.name}") as progress:
        (run, missing), compare = ask.timed(lambda: ask.compare(asked, progress))
    told = [verdict.as_dict() for verdict in verdicts]
    return made(asked, evidence.Findings(told, run, missing, {"verdicts": judged, "comparison": compare}))


@speaking
def figures(
    system: str | None = None,
    only: str | None = None,
    *,
    folder: "str | os.PathLike[str] | None" = None,
    quick: bool = False,
) -> "list[Path]":
    """Draw the published figures of the papers and ours, and return their files.

    Arguments:
        system: The system; by default all.
        only: The name of a figure.
        folder: Output folder, with a subfolder for each system; by default runs/figures/out.
        quick: Make smaller runs, and say so in the captions.

    Returns:
        Paths of the pictures. Missing runs are computed first and stored.

    Raises:
        MissingError: The package of figures is not installed; it needs a checkout of odesim.
        UsageError: A figure that is not there.

    Example:
        >>> import odesim
        >>> try:
        ...     odesim.figures("liao", "fig9")
        ... except odesim.UsageError as error:
        ...     print(error)
        there is no figure 'fig9'; did you mean 'fig2'?
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
    """Write verdicts, figures and runs as one HTML page that needs no other file.

    Arguments:
        folders: A folder of a run, a sweep, verdicts or figures, or a list of them.
        out: Path of the page.
        overwrite: Replace a page that is there.

    Returns:
        The path of the page.

    Raises:
        UsageError: A folder that holds none of these, and a page that is there already.

    Example:
        >>> import odesim, tempfile
        >>> run = odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0)
        >>> with tempfile.TemporaryDirectory() as place:
        ...     odesim.report(run.save(place + "/run", pictures=False), place + "/page.html").name
        'page.html'
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
    """Write an interactive page of runs, bands, a comparison or a sweep. The page needs no other file.

    Arguments:
        what: A result of `integrate`, `simulate`, `compare`, `bands`, `sweep` or `load`, a folder, or a list of these,
            drawn together. A sweep shows curves if it was made with `save_points` or `save_at`.
        out: Path of the page.
        overwrite: Replace a page that is there.

    Returns:
        The path of the page.

    Raises:
        UsageError: Anything else as `what`, and a page that is there already.
        MissingError: plotly is not installed.

    Example:
        >>> import odesim, tempfile
        >>> run = odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0)
        >>> with tempfile.TemporaryDirectory() as place:
        ...     odesim.explore(run, place + "/run.html").name
        'run.html'
    """
    from odesim.show import explore as maker

    return maker.write(what, out, overwrite)


@speaking
def load(folder: "str | os.PathLike[str]") -> Any:
    """Read a folder that a command or `save` wrote; the hashes of its files are verified.

    Arguments:
        folder: Its path.

    Returns:
        A `Run`; of a sweep an `xarray.Dataset`; of `odesim verify` the `Verdicts`, as dictionaries; of `odesim check` a
        `Check`; of `odesim figures` the paths of the pictures.

    Raises:
        UsageError: A folder that is missing, unfinished or damaged.

    Example:
        >>> import odesim, tempfile
        >>> run = odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0)
        >>> with tempfile.TemporaryDirectory() as place:
        ...     stored = odesim.load(run.save(place + "/run", pictures=False))
        >>> stored.parameters["m"], len(stored.time)
        (3, 201)
    """
    from odesim.public import folders

    return folders.load(folder)


@speaking
def save(result: Any, folder: "str | os.PathLike[str]", *, overwrite: bool = False, pictures: bool = True) -> "Path":
    """Store a result of this session in a folder, as the commands do.

    Arguments:
        result: A run, a list of stages, a comparison, verdicts, a check or another answer.
        folder: The folder, made with those above it.  `load`, `odesim show`, `compare`, `report` and `after=` take it.
        overwrite: Replace a finished folder.
        pictures: Draw a run's pictures beside it.

    Returns:
        The path of the folder.

    Raises:
        UsageError: Anything else, a folder that is finished already, and one that is in use.

    Example:
        >>> import odesim, tempfile
        >>> run = odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0)
        >>> with tempfile.TemporaryDirectory() as place:
        ...     odesim.load(odesim.save(run, place + "/run", pictures=False)).outcome.kind
        'completed'
    """
    from odesim.public import folders

    return folders.save(result, folder, overwrite=overwrite, pictures=pictures)
