"""Verdicts, figures, reports, and the storage of results in folders."""

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
"""Options of `check` that are not parameters of a system."""


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
        system: Name of a system, path of a file that declares one, or a `System`.
        claims: The id of a claim or a list of ids; by default all (`odesim verify --list` lists them).
        effort: "quick", "full" or "gpu".
        seed: Seed of every random number.
        backend: "numba" or "jax".
        workers: Number of processes. Each process judges one module of claims at a time.

    Returns:
        `Verdicts`, a list that is displayed as a table; `.save(folder)` stores it.

    Raises:
        UsageError: A claim does not exist.
        InterruptedRun: Ctrl-C was pressed; its `result` has the finished verdicts.

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
    """Return the verdicts on some forms, in order. Raises `InterruptedRun` at Ctrl-C, with the verdicts decided so
    far.
    """
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
    """Check how well a model is reproduced, as one citable object; nothing is written.

    The check has verdicts of the claims, a grade, the equations, and a comparison of SGD with the flow.

    Arguments:
        system: Name of a system, path of a file that declares one, or a `System`.
        claims: The id of a claim or a list of ids; by default all.
        effort, seed, backend, workers: As for `verify`.
        compared: Compare SGD with the flow.
        preset, stage, until, step_size, batch, seeds, parameters: Setting of this comparison; by default one that takes
            seconds.

    Returns:
        A `Check`: `.answer`, `.grade`, `.summary()`, `.record` in the form of the published schema,
        `.changes(earlier)`, and `.save(folder)`, which writes the page.

    Raises:
        UsageError: A claim does not exist, or the comparison is impossible.
        InterruptedRun: Ctrl-C was pressed; its `result` has the finished verdicts.

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
    """Draw the published figures of the papers and those of odesim, and return their files.

    Arguments:
        system: The system; by default all.
        only: The name of a figure.
        folder: Output folder, with a subfolder for each system; by default runs/figures/out.
        quick: Make smaller runs, and say so in the captions.

    Returns:
        Paths of the pictures. Missing runs are computed first and stored.

    Raises:
        MissingError: The figures are not installed; they need a checkout of odesim.
        UsageError: The figure does not exist.

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
        overwrite: Replace an existing page.

    Returns:
        The path of the page.

    Raises:
        UsageError: A folder has no such content, or the page exists already.

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
        what: A result of `integrate`, `simulate`, `compare`, `bands`, `sweep` or `load`, a folder, or a list of these.
            The results of a list are drawn together. A sweep has curves if it was made with `save_points` or `save_at`.
        out: Path of the page.
        overwrite: Replace an existing page.

    Returns:
        The path of the page.

    Raises:
        UsageError: `what` is something else, or the page exists already. MissingError: plotly is not installed.

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
        The result depends on the folder: a `Run`, an `xarray.Dataset` for a sweep, `Verdicts` for `odesim verify` (with
        dictionaries as entries), a `Check` for `odesim check`, an answer for commands such as `odesim bands`, and the
        paths of the pictures for `odesim figures`.

    Raises:
        UsageError: The folder is missing, unfinished or damaged.

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
        folder: Path of the folder; missing parent folders are created. `load`, `odesim show`, `compare`, `report` and
            `after=` read such a folder.
        overwrite: Replace a finished folder.
        pictures: Also draw the pictures of a run.

    Returns:
        The path of the folder.

    Raises:
        UsageError: `result` is something else, or the folder is finished or in use.

    Example:
        >>> import odesim, tempfile
        >>> run = odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0)
        >>> with tempfile.TemporaryDirectory() as place:
        ...     odesim.load(odesim.save(run, place + "/run", pictures=False)).outcome.kind
        'completed'
    """
    from odesim.public import folders

    return folders.save(result, folder, overwrite=overwrite, pictures=pictures)
