"""The command `odesim`.  Importing it is light: each command imports what it needs when it runs."""

import atexit
import gc
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from odesim.cli import (
    atlas,
    bands,
    check,
    examples,
    exponents,
    export,
    figures,
    inform,
    interrupts,
    observe,
    optimise,
    report,
    run,
    sensitivity,
    sgd,
    stored,
    streams,
    sweep,
    verify,
    warm,
)
from odesim.cli.output import INTERRUPTED, complain
from odesim.machine.ownership import claim_process
from odesim.version import PURPOSE

app = typer.Typer(
    name="odesim",
    help=PURPOSE,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples.CODES,
)


def _version(asked: bool | None) -> None:
    """Print the version and leave."""
    if asked:
        from odesim.version import __version__

        print(f"odesim {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool | None, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = None,
) -> None:
    """Options of the command itself."""


for command, name in (
    (inform.systems, "systems"),
    (inform.derive, "derive"),
    (run.integrate, "integrate"),
    (sgd.simulate, "simulate"),
    (sgd.compare, "compare"),
    (bands.bands, "bands"),
    (sensitivity.sensitivity, "sensitivity"),
    (optimise.optimise, "optimise"),
    (observe.observe, "observe"),
    (export.export, "export"),
    (export.conventions, "conventions"),
    (verify.verify, "verify"),
    (check.check, "check"),
    (sweep.sweep, "sweep"),
    (atlas.atlas, "atlas"),
    (figures.figures, "figures"),
    (report.report, "report"),
    (report.explore, "explore"),
    (exponents.exponents, "exponents"),
    (stored.show, "show"),
    (stored.plot, "plot"),
    (inform.doctor, "doctor"),
    (warm.warm, "warm"),
    (inform.cite, "cite"),
):
    app.command(name, short_help=examples.SUMMARIES[name], epilog=examples.epilog(name))(command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command with `arguments` (those of the process by default) and exit with its code.

    Every failure prints one sentence on stderr; with `--debug` the traceback follows.
    """
    claim_process()
    words = list(sys.argv[1:] if arguments is None else arguments)
    atexit.register(gc.freeze)  # otherwise the interpreter visits every object of a compiler at exit: 0.3 s
    warnings.showwarning = _warned
    os.environ["MPLBACKEND"] = "agg"  # pictures go to files, whatever backend the user has set
    streams.spell()
    sys.exit(_run(words or ["--help"]))


def _warned(message: Warning | str, category: type[Warning], *place: Any) -> None:
    """Print a warning of odesim as one sentence; those of other packages keep their form."""
    if category.__module__.partition(".")[0] == "odesim":
        print(f"odesim: {message}.", file=sys.stderr)
    else:
        sys.stderr.write(warnings.formatwarning(message, category, *place[:2]))


def _run(words: list[str]) -> int:
    """Run the command and return its exit code. Every exception becomes one sentence."""
    asked: list[int] = []
    try:
        with interrupts.noting(asked):
            code = app(words, prog_name="odesim", standalone_mode=False) or 0
        sys.stdout.flush()
    except BrokenPipeError:
        return _left_alone()
    except SystemExit as left:  # Typer's exit when the reader of the output has closed the pipe
        if isinstance(left.__context__, BrokenPipeError):
            return _left_alone()
        raise
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            error = error.__cause__  # as `errors.interruptible`, for commands without a result
        code = complain(error, interrupted=bool(asked))
        _let_go()
        if "--debug" in words:
            import traceback

            traceback.print_exception(error)
        return code
    # Typer turns Ctrl-C into this code without a word.
    return complain(KeyboardInterrupt()) if code == INTERRUPTED else code


def _left_alone() -> int:
    """Return the exit code 0 if the reader of a pipe has closed it (`| head`).

    The rest of the output is discarded.
    """
    _let_go()
    return 0


def _let_go() -> None:
    """Discard output that cannot be printed (no reader, a full disk), of which the interpreter would complain at
    exit.
    """
    try:
        sys.stdout.flush()
    except OSError:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
