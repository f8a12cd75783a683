"""A second process that compiles what a command will call later, while the command derives and compiles the rest.

Typing and lowering hold Python's lock, so that threads do not help.  What the process makes goes through the cache of
machine code (`odesim.code.kept`): it says on its standard output which form it has begun and which it has made, and the
command waits for a form only where it has been begun.  Where anything fails there, the command does that work itself,
and says what is wrong.
"""

import contextlib
import dataclasses
import gc
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from derivations.contract import Dynamics, Equations, Independent, Role, Shared, Stepped, UsageError, load
from derivations.contract.equations import BOTH
from odesim.code import kept
from odesim.machine.processes import crew_size

if TYPE_CHECKING:
    from odesim.flow.problem import Problem

Command = Literal["flow", "sgd", "both"]
"""What is computed: a flow, training, or training with its flow beside."""
SERVE = (sys.executable, "-c", "from odesim.cli.compiler import serve; serve()")
BLOCKS = "odesim.flow.block_addresses:SHARED"
"""The integrator of independent blocks."""
EVALUATED = "odesim.code.derivative:SHARED"
"""What Python calls of a flow that is called by its address."""
STEPPED = "odesim.flow.solvers.dop853:SHARED"
"""A step over such a flow, where it is large."""
STEPS = "odesim.sgd.compressed:SHARED"
"""What a step of compressed SGD calls, for models of Gaussian inputs."""
BEGUN, MADE = "begun", "made"
"""What the process says of a form of a compiled function."""


@contextlib.contextmanager
def compiling(
    command: Command, given: Mapping[str, Any], threads: int | None = None
) -> Iterator[Callable[[Any], None]]:
    """Compile beside what is done in here, where the cache lacks it and a second core is there for it.

    `given` = {"system", "parameters", and options} of a request, as words and plain data (no system: no process);
    what is yielded is to be called with the request as soon as it is made (a case, a simulation, a pair).
    """
    # What is traced is compiled by XLA, in threads that take the second core already.
    traced = given.get("backend") == "jax"
    alone = given["system"] is None or traced or threads == 1 or crew_size(None) == 1
    started: list[Compiler] = []

    def begin(job: Mapping[str, Any]) -> None:
        if job and not started:
            started.append(Compiler(job))
            kept.OTHERS.extend(started)

    def later(request: Any) -> None:
        if alone:
            return
        first, second = (
            _flow_jobs(request, given) if command == "flow" else (_training_job(command, request, given), {})
        )
        if started:  # with its first job
            started[0].last(second)
            return
        begin(first or second)
        for other in started:
            other.last(second if first else {})

    try:
        if command == "flow" and not alone:
            begin(_shared_job(given))
        yield later
    finally:
        for other in started:
            kept.OTHERS.remove(other)
            other.close()


def _shared_job(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the flows of a stage share, before its request is made: to make it may need a derivation."""
    from odesim.request.case import AUTO, find_stage, find_system

    try:
        stage = find_stage(find_system(given["system"]), given.get("stage"))
    except UsageError:  # the command says so
        return {}
    tier = given["parameters"].get("tier", AUTO)
    found = stage.shared.items() if isinstance(stage, Dynamics) else ()
    own = [name for of, name in found if tier in (of, AUTO)]
    shared = [name for name in (*own, *([EVALUATED] if own else ())) if _missing(load(name))]
    return {"shared": shared} if shared else {}


def _flow_jobs(request: Any, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the first stage of a flow calls after its first function, and its steps, as far as the cache lacks them."""
    from odesim.code import compile
    from odesim.flow.solvers.dop853 import LARGE

    case = getattr(request, "cases", (request,))[0]
    stage = case.system.stage(case.stage)
    if not isinstance(stage, Dynamics):
        return {}, {}
    equations = load(stage.equations)(case.parameters, case.tier)
    if equations.code.statement is not None:  # its kernel is compiled in a second, by the command itself
        return {}, {}
    large = equations.code.addressed is not None and equations.layout.least >= LARGE
    steps = {"shared": [STEPPED]} if large and _missing(load(STEPPED)) else {}
    if isinstance(equations.advance, Independent) and _missing(load(BLOCKS)):
        return {"shared": [BLOCKS]}, steps  # which takes so long that the command comes to the loss first
    wanted = _later(equations) and not compile.known(equations)
    return {"shared": [], "command": "flow", "given": dict(given)} if wanted else {}, steps


def _training_job(command: Command, request: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """What training calls after the loops of its model, and the flow beside it, as far as the cache lacks them."""
    from odesim.code import compile
    from odesim.sgd import families
    from odesim.sgd.observed import flow_of

    simulation = request.simulation if command == "both" else request
    case = simulation.case
    stage = case.system.dynamics(case.stage)
    model, equations = stage.truth(case.parameters), flow_of(stage, case.parameters)
    gaussian, compresses = type(model) not in families.FAMILIES, simulation.method == "compressed"
    if gaussian and not compresses:  # traced, too
        return {}
    if gaussian:
        called = (STEPS,) if simulation.batch > 1 else ()
    else:
        called = families.ahead(model, case.parameters, compresses, simulation.batch)
    shared = [name for name in called if _missing(load(name))]
    job: dict[str, Any] = {"shared": shared} if shared else {}
    flows = command == "both" or families.keeps_loss(model, case.parameters, simulation.population_loss)
    if flows and equations is not None and equations.code.loops and not compile.known(equations):
        job = {"shared": [], **job, "command": command, "given": dict(given)}
    return job


def _missing(shared: Sequence[Shared]) -> bool:
    """Whether some of these functions were never compiled, by this processor or another."""
    from odesim.code import compile

    return not all(compile.known_common(one.group) for one in shared)


class Compiler:
    """The process, and what it has said; forms of compiled functions go by the names of their files."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._begun: set[str] = set()
        self._made: set[str] = set()
        self._said, self._ended = threading.Condition(), False
        # Its own session: Ctrl-C is the command's to answer, which ends it.
        self._process = subprocess.Popen(
            SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            start_new_session=True,
        )  # fmt: skip
        self._listener = threading.Thread(target=self._listen, name="odesim-compiling-ahead", daemon=True)
        self._listener.start()
        self._write(job)

    def _write(self, job: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(job, default=str) + "\n")
            self._process.stdin.flush()

    def last(self, job: Mapping[str, Any]) -> None:
        """A second job, or none: after it the process ends."""
        self._write(job)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, name = line.strip().partition(" ")
            with self._said:
                (self._begun if word == BEGUN else self._made).add(name)
                self._said.notify_all()
        with self._said:
            self._ended = True
            self._said.notify_all()

    def begin(self, path: Path) -> bool:
        """Whether a form that is not in the cache need not be compiled here: it is waited for where it was begun."""
        with self._said:
            if path.name in self._begun:
                self._said.wait_for(lambda: path.name in self._made or self._ended)
            return path.name in self._made

    def end(self, path: Path) -> None:
        """What is made here it will find in the cache."""

    def wait(self) -> None:
        """Return when the process has done its job, or has ended without."""
        self._listener.join()

    def close(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._listener.join()
        with contextlib.suppress(BrokenPipeError), self._process:  # which closes the pipes
            pass


class Telling:
    """Tells the command what is begun and made here."""

    def __init__(self, answers: TextIO) -> None:
        self.answers = answers

    def begin(self, path: Path) -> bool:
        """Say so, and compile."""
        print(BEGUN, path.name, file=self.answers, flush=True)
        return False

    def end(self, path: Path) -> None:
        """Say so."""
        print(MADE, path.name, file=self.answers, flush=True)


def serve() -> None:
    """Do the two jobs that the command at the other end of the pipes writes, unless it ends before."""
    gc.disable()  # a short life
    answers, sys.stdout = sys.stdout, sys.stderr
    jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def follow() -> None:
        for line in sys.stdin:
            jobs.put(json.loads(line))
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    kept.OTHERS.append(Telling(answers))
    for _ in range(2):
        job = jobs.get()
        for reference in job.get("shared", ()):
            for shared in load(reference):
                _compile(shared)
        if "command" in job:
            _compile_later(job["command"], job["given"])
    answers.flush()
    os._exit(0)


def _compile(shared: Shared) -> None:
    from odesim.code import addressed, compile

    function: Any = compile.common(shared.group)[shared.name]
    if shared.entered:
        function.compile(addressed.types_of(shared.signature))
    else:
        addressed.address(function, shared.signature)


def _compile_later(command: Command, given: dict[str, Any]) -> None:
    """Compile what a command calls after other functions, by calling it at its start."""
    from odesim.flow.problem import prepare

    system, parameters = given.pop("system"), given.pop("parameters")
    if command == "flow":
        from odesim.ask import flow

        asked = flow.request(system, parameters, **given)
        problem = prepare(asked.cases[0] if isinstance(asked, flow.Pipeline) else asked)
        _call(problem, _later(problem.equations))
        return
    from odesim.ask import sgd
    from odesim.flow import solve

    if command == "both":
        pair = sgd.pair(system, parameters, **given)
        times = (pair.simulation.schedule * pair.simulation.tick)[:2]
        solve.solve(dataclasses.replace(pair.flow, until=float(times[-1])), times=times)
    else:
        _call(prepare(sgd.request(system, parameters, **given).case), ("loss",))


def _later(equations: Equations) -> tuple[Role, ...]:
    """What is compiled of some equations after that by which they are followed, and apart from it."""
    code = equations.code
    both = next((code.roles[role] for role in BOTH if role in code.roles), None)
    names = {role: code.roles.get(role, both) for role in ("flow", "march", "loss", "watch")}
    first = names["march" if isinstance(equations.advance, Stepped) else "flow"]
    apart = {reference.partition(":")[2] for reference in code.loops} - {first}  # what is interpreted calls the same
    return tuple(role for role in ("loss", "watch") if names[role] in apart)


def _call(problem: "Problem", roles: Iterable[Role]) -> None:
    for role in roles:
        if role in problem.functions:
            problem.functions[role](problem.start, *problem.arguments)
