"""What a figure needs, made once and stored; then the figure is drawn from what is stored, without computing.

A figure is a module of the package `figures.<system>`, or of the one that a system outside names, with

    CAPTION   what is shown, true of every size; CLAIMS the ids of the claims it shows (may be empty)
    PUBLISHED (optional) what is true of the full size alone: its numbers, and what came out
    QUICK = False where no smaller request shows the effect: then there is no quick form
    needs(quick=False)   a list of `Request` (a run of the flow) and `Table` (numbers that are no run)
    draw(stored)         a matplotlib figure from what `needs` asked for, in that order

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
from odesim.store import Checkpoint, Run, load, prepare, save
from odesim.store.files import FIGURES, read_json, sha256, write_json

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
        """The request, resolved."""
        return Case.build(self.system, self.parameters, **self.options)


@dataclasses.dataclass(frozen=True)
class Table:
    """Numbers that are no run (a closed form, a Monte Carlo estimate): columns made by `measure(**arguments)`."""

    name: str
    measure: Callable[..., Mapping[str, Any]]
    arguments: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Twelve characters that name the arguments and the source of the measurement."""
        source = hashlib.sha256(inspect.getsource(self.measure).encode()).hexdigest()
        return digest_of({"name": self.name, "arguments": dict(self.arguments), "source": source})


@dataclasses.dataclass(frozen=True)
class Stored:
    """A stored table: its arguments and its columns as arrays."""

    arguments: Mapping[str, Any]
    columns: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """A column by name."""
        return np.asarray(self.columns[name])


def modules(system: str | None = None, only: str | None = None) -> list[tuple[str, str, ModuleType]]:
    """(system, name, module) of the figures, of one system or all.  Raises `UsageError` for an unknown name.

    Raises `MissingError` where the package is not there: an installed odesim is without it.
    """
    found = []
    for owner, package in _packages(system).items():
        path = importlib.import_module(package).__path__
        names = sorted(m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_"))
        found += [(owner, name, f"{package}.{name}") for name in names]
    if only is not None and only not in [name for _, name, _ in found]:
        raise UsageError(f"there is no figure {only!r}; {nearest(only, [name for _, name, _ in found])}")
    return [(owner, name, importlib.import_module(full)) for owner, name, full in found if only in (None, name)]


def _packages(system: str | None) -> dict[str, str]:
    """The packages of figures of a system, the one that it names itself or ours, or of all systems that we draw."""
    if system is not None:
        chosen = find_system(system)
        system = derivations.reference(chosen)
        if chosen.figures:
            return {system: chosen.figures}
    root = _package()
    known = sorted(module.name for module in pkgutil.iter_modules(root.__path__) if module.ispkg)
    if system is not None and system not in known:
        raise UsageError(f"system {system} has no figures yet; there are those of {', '.join(known)}")
    return {owner: f"{PACKAGE}.{owner}" for owner in ([system] if system is not None else known)}


def _package() -> ModuleType:
    """The package of figures that belongs to this odesim."""
    sentence = "the figures are not here: they stand beside odesim in its repository; install it from there"
    try:
        root = importlib.import_module(PACKAGE)
    except ImportError:
        raise MissingError(sentence) from None
    ours = Path(__file__).resolve().parents[2] / PACKAGE
    if ours not in [Path(path).resolve() for path in root.__path__]:
        raise MissingError(sentence)
    return root


def obtain(need: Request | Table, root: Path = RUNS, say: Say | None = None) -> Run | Stored:
    """What a figure needs, read from `root`, or made and stored there first.  Raises `NumericalError` if it fails."""
    return _table(need, root, say) if isinstance(need, Table) else _run(need, root, say)


def _run(need: Request, root: Path, say: Say | None) -> Run:
    case = need.case()
    root.mkdir(parents=True, exist_ok=True)
    folder = root / f"{case.system.name}-{case.digest}"
    target = prepare(case, folder, resume=True)
    if target.stored is None:
        if say is not None:
            say(f"integrating {_words(need)}")
        began = time.perf_counter()
        trajectory = solve.solve(case, checkpoint=Checkpoint(folder, case.digest))
        if trajectory.outcome.kind == "failed":
            raise NumericalError(f"a run that a figure needs failed ({_words(need)}): {trajectory.outcome.reason}")
        save(trajectory, case, folder, {"solve": time.perf_counter() - began}, draw=None)
    return target.stored if target.stored is not None else load(folder)


def _table(need: Table, root: Path, say: Say | None) -> Stored:
    path = root / "tables" / f"{need.name}-{need.digest}.json"
    if not path.is_file():
        if say is not None:
            say(f"computing the table {need.name}")
        columns = need.measure(**need.arguments)
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
    """Draw figures into `out/<system>`, the runs they lack made first; returns the PNG files.

    With `quick` the smaller requests of the figures, and every such figure says so and is named NAME-quick.png.
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
                say(f"{owner}/{name} has no smaller form: its effect needs the full size, so it is left out")
            continue
        stored = [obtain(need, root, say) for need in module.needs(quick=quick)]
        path = folder / f"{name}{'-quick' if quick else ''}.png"
        _save(module, stored, path, quick)
        _record(folder, system, path, module, stored, quick)
        paths.append(path)
    return paths


def draw(module: ModuleType, stored: Sequence[Run | Stored], quick: bool = False) -> Any:
    """The figure of a module in the house style; `quick` writes below it that the request was a smaller one."""
    import matplotlib as mpl

    from odesim.show.plot import STYLE

    with mpl.rc_context(rc=STYLE):
        figure = module.draw(stored)
        if quick:
            figure.supxlabel(
                "smaller request (--quick), not the published size", fontsize=7, color="0.35", x=0.99, ha="right"
            )
    return figure


def _save(module: ModuleType, stored: Sequence[Run | Stored], path: Path, quick: bool) -> None:
    import matplotlib as mpl

    from odesim.show.plot import STYLE

    temporary = path.with_name(f".{path.name}.partial")
    try:
        with mpl.rc_context(rc=STYLE):
            draw(module, stored, quick).savefig(temporary, format="png", metadata={"Software": "odesim"})
        temporary.replace(path)
    except OSError as error:
        raise StorageError(f"{path} could not be written ({error.strerror}); choose another --out") from error
    finally:
        temporary.unlink(missing_ok=True)


def caption_of(module: ModuleType, quick: bool) -> str:
    """The caption of a figure: what it shows, then what is true of its size: the published one, or what was asked."""
    if not quick:
        return " ".join(filter(None, (module.CAPTION, getattr(module, "PUBLISHED", ""))))
    asked = "; ".join(dict.fromkeys(_words(need) for need in module.needs(quick=True)[:3]))
    return f"{module.CAPTION} Smaller request (--quick): {asked}."


def _record(folder: Path, system: str, path: Path, module: ModuleType, stored: Sequence[Any], quick: bool) -> None:
    """Note a figure in the list of its folder, from which `odesim report` takes caption, claims and digest."""
    try:
        known = read_json(folder / LIST)["figures"]
    except (OSError, ValueError, KeyError, TypeError):
        known = []
    caption = caption_of(module, quick)
    runs = [run.digest for run in stored if isinstance(run, Run)]
    entry = {"file": path.name, "caption": caption, "claims": list(module.CLAIMS), "runs": runs, "sha256": sha256(path)}
    rest = [other for other in known if other["file"] != path.name and (folder / other["file"]).is_file()]
    content = sorted([*rest, entry], key=lambda item: item["file"])
    write_json(folder / LIST, {"system": system, "figures": content})
