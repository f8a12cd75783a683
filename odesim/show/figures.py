"""Figures, drawn from stored runs; runs and tables that a figure needs are computed once and stored.

A figure is a module of the package `figures.<system>`, or of the package that an external system names, with

    CAPTION   content, valid for every size; CLAIMS the ids of its claims (may be empty)
    PUBLISHED (optional) facts of the full size only: its numbers, and the outcome
    QUICK = False if no smaller request shows the effect: then there is no quick form
    needs(quick=False)   a list of `Request` (a run of the flow) and `Table` (numbers without a run)
    draw(stored)         a matplotlib figure from the results of `needs`, in that order

The package stands beside odesim in the repository and above it in the order of imports, so it is found by name.
"""

import dataclasses
import hashlib
import importlib
import inspect
import pkgutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import derivations
from derivations.contract import System
from odesim.errors import MissingError, NumericalError, StorageError, UsageError
from odesim.flow import solve
from odesim.request.case import Case, digest_of, find_system, short_name
from odesim.request.parse import nearest
from odesim.show.alt import describe
from odesim.show.axes import plain_logs
from odesim.store import Checkpoint, Run, load, prepare, save
from odesim.store.files import FIGURES, read_json, sha256, storing, write_json

PACKAGE = "figures"
RUNS = Path("runs") / "figures"
OUT = RUNS / "out"
LIST = FIGURES
Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Request:
    """A run of the flow: parameters of the system, and the options of `odesim integrate`."""

    system: str | System
    parameters: Mapping[str, Any]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def case(self) -> Case:
        """The request as a `Case`."""
        return Case.build(self.system, self.parameters, **self.options)


@dataclasses.dataclass(frozen=True)
class Table:
    """Numbers that are not a run (a closed form, a Monte Carlo estimate): columns computed by
    `measure(**arguments)`.
    """

    name: str
    measure: Callable[..., Mapping[str, Any]]
    arguments: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Twelve characters that identify the arguments and the source of the measurement."""
        source = hashlib.sha256(inspect.getsource(self.measure).encode()).hexdigest()
        return digest_of({"name": self.name, "arguments": dict(self.arguments), "source": source})


@dataclasses.dataclass(frozen=True)
class Stored:
    """A stored table: its arguments and its columns as arrays."""

    arguments: Mapping[str, Any]
    columns: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """Return a column by name."""
        return np.asarray(self.columns[name])


def modules(system: str | None = None, only: str | None = None) -> list[tuple[str, str, ModuleType]]:
    """Return (system, name, module) of the figures, of one system or all. Raises `UsageError` for an unknown name.

    Raises `MissingError` without the package `figures`, which an installed odesim does not have.
    """
    figure_names = []
    for owner, package in _packages(system).items():
        path = importlib.import_module(package).__path__
        names = sorted(m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_"))
        figure_names += [(owner, name, f"{package}.{name}") for name in names]
    if only is not None and only not in [name for _, name, _ in figure_names]:
        raise UsageError(f"there is no figure {only!r}; {nearest(only, [name for _, name, _ in figure_names])}")
    return [(owner, name, importlib.import_module(full)) for owner, name, full in figure_names if only in (None, name)]


def _packages(system: str | None) -> dict[str, str]:
    """Return the packages of figures of a system, its own or odesim's, or of all systems with figures."""
    if system is not None:
        chosen = find_system(system)
        system = derivations.reference(chosen)
        if chosen.figures:
            return {system: chosen.figures}
    root = _package()
    owners = sorted(module.name for module in pkgutil.iter_modules(root.__path__) if module.ispkg)
    if system is not None and system not in owners:
        raise UsageError(f"system {system} has no figures yet; there are those of {', '.join(owners)}")
    return {owner: f"{PACKAGE}.{owner}" for owner in ([system] if system is not None else owners)}


def _package() -> ModuleType:
    """Return the package of figures that belongs to this odesim."""
    sentence = (
        "the figures are not installed: they are part of the repository of odesim; install odesim from a checkout"
    )
    try:
        root = importlib.import_module(PACKAGE)
    except ImportError:
        raise MissingError(sentence) from None
    expected = Path(__file__).resolve().parents[2] / PACKAGE
    if expected not in [Path(path).resolve() for path in root.__path__]:
        raise MissingError(sentence)
    return root


def obtain(need: Request | Table, root: Path = RUNS, say: Say | None = None) -> Run | Stored:
    """Return a run or table that a figure needs, from `root`; compute and store it first if it is missing.

    Raises `NumericalError` if the computation fails.
    """
    with storing(root):
        root.mkdir(parents=True, exist_ok=True)
    return _table(need, root, say) if isinstance(need, Table) else _run(need, root, say)


def _run(need: Request, root: Path, say: Say | None) -> Run:
    case = need.case()
    folder = root / f"{case.system.name}-{case.digest}"
    target = prepare(case, folder, resume=True)
    if target.stored is None:
        if say is not None:
            say(f"integrating {_words(need)}")
        start = time.perf_counter()
        trajectory = solve.solve(case, checkpoint=Checkpoint(folder, case.digest))
        if trajectory.outcome.kind == "failed":
            raise NumericalError(f"a run that a figure needs failed ({_words(need)}): {trajectory.outcome.reason}")
        save(trajectory, case, folder, {"solve": time.perf_counter() - start}, draw=None)
    return target.stored if target.stored is not None else load(folder)


def _table(need: Table, root: Path, say: Say | None) -> Stored:
    path = root / "tables" / f"{need.name}-{need.digest}.json"
    if not path.is_file():
        if say is not None:
            say(f"computing the table {need.name}")
        columns = need.measure(**need.arguments)
        with storing(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, {"name": need.name, "arguments": need.arguments, "columns": columns})
    content = read_json(path)
    return Stored(content["arguments"], content["columns"])


def _words(need: Request | Table) -> str:
    if isinstance(need, Table):
        return " ".join(f"{name}={value}" for name, value in need.arguments.items())
    name = need.system if isinstance(need.system, str) else need.system.name
    return " ".join([name, *(f"{name}={value}" for name, value in {**need.parameters, **need.options}.items())])


def make(
    chosen: Sequence[tuple[str, str, ModuleType]],
    out: Path | None = None,
    *,
    quick: bool = False,
    root: Path = RUNS,
    say: Say | None = None,
) -> list[Path]:
    """Draw figures into `out/<system>`, after computing missing runs. Return the PNG files.

    With `quick` smaller runs are made; every such figure has a note and is named NAME-quick.png.
    """
    paths = []
    for system, name, module in chosen:
        owner = short_name(system)
        folder = (out if out is not None else OUT) / owner
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{folder} cannot be made ({error.strerror}); choose another --out") from None
        if quick and not getattr(module, "QUICK", True):
            if say is not None:
                say(f"{owner}/{name} has no quick form, because its effect needs the full size; it is left out")
            continue
        stored = [obtain(need, root, say) for need in module.needs(quick=quick)]
        path = folder / f"{name}{'-quick' if quick else ''}.png"
        alt = _save(module, stored, path, quick)
        _record(folder, system, path, {"caption": caption_of(module, quick), "alt": alt}, module, stored)
        paths.append(path)
    return paths


def captions(paths: Sequence[Path]) -> dict[str, str]:
    """Return the caption of every figure in `paths`, from the list in its folder."""
    by_path = {}
    for path in paths:
        entries = {entry["file"]: entry["caption"] for entry in read_json(path.parent / LIST)["figures"]}
        by_path[str(path)] = entries[path.name]
    return by_path


def draw(module: ModuleType, stored: Sequence[Run | Stored], quick: bool = False) -> Any:
    """Draw the figure of a module in the house style. `quick` writes below it that the runs were smaller."""
    import matplotlib as mpl

    from odesim.show.plot import STYLE

    with mpl.rc_context(rc=STYLE):
        figure = module.draw(stored)
        plain_logs(figure)
        if quick:
            figure.supxlabel(
                "smaller request (--quick), not the published size", fontsize=7, color="0.35", x=0.99, ha="right"
            )
    return figure


def _save(module: ModuleType, stored: Sequence[Run | Stored], path: Path, quick: bool) -> str:
    """Write a figure as PNG and SVG with its alternative text, and return this text."""
    import matplotlib as mpl

    from odesim.show.plot import STYLE

    figure = draw(module, stored, quick)
    alt = describe(figure)
    for target in (path, path.with_suffix(".svg")):
        temporary = target.with_name(f".{target.name}.partial")
        kind = target.suffix[1:]
        noted = {"png": {"Software": "odesim", "Description": alt}, "svg": {"Date": None, "Description": alt}}[kind]
        try:
            # Names in an SVG are random unless salted, and the same picture twice would differ.
            with mpl.rc_context(rc={**STYLE, "svg.hashsalt": path.stem}):
                figure.savefig(temporary, format=kind, metadata=noted)
            temporary.replace(target)
        except OSError as error:
            raise StorageError(f"{target} could not be written ({error.strerror}); choose another --out") from error
        finally:
            temporary.unlink(missing_ok=True)
    return alt


def caption_of(module: ModuleType, quick: bool) -> str:
    """Return the caption of a figure: its content, then the numbers of its size, published or requested."""
    needs = module.needs(quick=quick)
    if not quick:
        return " ".join(filter(None, (module.CAPTION, getattr(module, "PUBLISHED", ""), seeds_of(needs))))
    sizes = "; ".join(dict.fromkeys(_words(need) for need in needs[:3]))
    return " ".join(filter(None, (module.CAPTION, f"Smaller request (--quick): {sizes}.", seeds_of(needs))))


COUNTS = {"seeds": "seed", "replicas": "replica", "draws": "draw"}
"""Arguments of a table that give the number of random repetitions, and the word for one repetition."""


def seeds_of(needs: Sequence[Request | Table]) -> str:
    """Return a sentence with the number of seeds, replicas or draws of a figure, or "" if nothing is random.

    >>> seeds_of([Request("liao", {}, {"seed": 0}), Request("liao", {"m": 3}, {"seed": 0})])
    'One seed.'
    """
    words = []
    for name, word in COUNTS.items():
        counts_of = {int(n.arguments[name]) for n in needs if isinstance(n, Table) and name in n.arguments}
        if counts_of:
            counts = " or ".join(map(str, sorted(counts_of)))
            words.append(f"{counts} {word}{'' if counts_of == {1} else 's'}")
    runs = {need.options.get("seed", 0) for need in needs if isinstance(need, Request)}
    runs |= {n.arguments["seed"] for n in needs if isinstance(n, Table) and "seed" in n.arguments and not words}
    if runs:
        words.append("one seed" if len(runs) == 1 else f"{len(runs)} seeds")
    sentence = ", ".join(words)
    return f"{sentence[0].upper()}{sentence[1:]}." if words else ""


def _record(
    folder: Path, system: str, path: Path, words: Mapping[str, str], module: ModuleType, stored: Sequence[Any]
) -> None:
    """Add a figure to the list in its folder, from which `odesim report` takes caption, claims and digest.

    `words` are its caption and its alternative text.
    """
    try:
        entries = read_json(folder / LIST)["figures"]
    except (OSError, ValueError, KeyError, TypeError):
        entries = []
    runs = [run.digest for run in stored if isinstance(run, Run)]
    entry = {
        "file": path.name, "svg": path.with_suffix(".svg").name, **words, "claims": list(module.CLAIMS), "runs": runs,
        "sha256": sha256(path),
    }  # fmt: skip
    other_entries = [other for other in entries if other["file"] != path.name and (folder / other["file"]).is_file()]
    content = sorted([*other_entries, entry], key=lambda item: item["file"])
    with storing(folder):
        write_json(folder / LIST, {"system": system, "figures": content})
