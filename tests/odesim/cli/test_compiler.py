"""The process that compiles ahead: what it makes is what is called, and where it fails nothing is lost."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import odesim
from derivations.declare import lane_frame
from derivations.liao import loops as liao
from odesim.ask import flow, sgd
from odesim.cli import compiler
from odesim.code import addressed, compile, derivative, kept
from odesim.flow import block_addresses
from odesim.flow.problem import prepare
from odesim.flow.solvers import dop853
from odesim.request.case import Case, find_system
from odesim.sgd import compressed, families, pattern_addresses

(SLOPED,) = [one for one in lane_frame.SHARED if one.name == "sloped"]
ERF = {"unit": "erf(w/sqrt(2))", "units": 2}
FILE = (
    'name = "two"\nstudent = { unit = "erf(w/sqrt(2))", units = 2 }\nteacher = { unit = "erf(w/sqrt(2))", units = 2 }\n'
)
FORM = Path("module.function.nbc")


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """An empty cache, and generated modules forgotten."""
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path / "cache"))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("odesim_generated_"):
            del sys.modules[name]


@pytest.fixture
def job(monkeypatch):
    """The job that a command gives to the process; None where it starts none."""
    given = []

    class Recorded(compiler.Compiler):
        def __init__(self, wanted):
            given.append(wanted)

        def last(self, wanted):
            given.append(wanted)

        def close(self):
            pass

    monkeypatch.setattr(compiler, "Compiler", Recorded)
    monkeypatch.setattr(compiler, "crew_size", lambda asked: 2)

    def ask(command, system, threads=None, parameters=None, **options):
        given.clear()
        words = {"parameters": parameters or {}, **options}
        with compiler.compiling(command, {"system": system, **words}, threads) as later:
            if command == "flow":
                later(flow.request(system, **words))
            else:
                later(sgd.request(system, step_size=0.01, batch=8, until=0.1, **words))
        return given[0] if given else None

    ask.given = given
    return ask


def saying(*lines):
    """The words of a process that prints lines, sleeps where one is a number, and ends."""
    steps = [f"time.sleep({line})" if isinstance(line, float) else f"print({line!r}, flush=True)" for line in lines]
    return (sys.executable, "-c", "; ".join(["import time", *steps]))


def test_what_it_makes_of_a_declared_model_is_found_and_not_compiled_again(fresh):
    (fresh / "two.toml").write_text(FILE)
    with compiler.compiling("flow", {"system": str(fresh / "two.toml"), "parameters": {}}) as later:
        (other,) = kept.OTHERS
        later(Case.build(str(fresh / "two.toml"), {}))
        assert other._process.wait(60) == 0
        sloped = compile.common(SLOPED.group)["sloped"].bare()
        sloped.compile(addressed.types_of(SLOPED.signature))
    assert sum(sloped.stats.cache_misses.values()) == 0 and sum(sloped.stats.cache_hits.values()) == 1
    assert not kept.OTHERS and other._process.poll() is not None


def test_a_command_in_an_empty_cache_compiles_by_it_and_answers_the_same(fresh):
    (fresh / "two.toml").write_text(FILE)
    words = ["integrate", "--system", "two.toml", "--until", "1", "--no-figures", "--json", "--overwrite"]
    found = []
    for more in ([], ["--threads", "1"]):  # with a second process, and from the cache without one
        command = [sys.executable, "-m", "odesim", *words, *more]
        found.append(subprocess.run(command, cwd=fresh, capture_output=True, text=True, check=True))
    one, two = (json.loads(run.stdout)["summary"] for run in found)
    assert one == two
    assert all(line.startswith("odesim: integrating two") for run in found for line in run.stderr.splitlines())


@pytest.mark.parametrize("limit", ["flow", "online"])
def test_a_declared_flow_calls_the_form_that_is_compiled_ahead(limit):
    system = odesim.declare(student=ERF, teacher=ERF, training={"limit": limit})
    problem = prepare(Case.build(system, {}))
    found = problem.functions["given"].__globals__
    found["called"].cache_clear()  # of modules that another test has forgotten
    states = np.stack([problem.start, problem.start], axis=1)
    fixed = problem.start.copy()
    fixed.flags.writeable = False
    one, *others = (problem.functions["flow"](0.0, y, *problem.arguments) for y in (fixed, states[:, 1], problem.start))
    assert all((one == other).all() for other in others)
    for one in lane_frame.SHARED:
        assert found[one.name].bare().signatures == [addressed.types_of(one.signature)]
        assert not found[one.name].signatures


def test_what_it_has_made_is_taken_and_what_it_has_not_begun_is_not_waited_for(monkeypatch):
    lines = (f"{compiler.BEGUN} {FORM}", 0.5, f"{compiler.MADE} {FORM}", 60.0)
    monkeypatch.setattr(compiler, "SERVE", saying(*lines))
    other = compiler.Compiler({})
    try:
        while not other._begun:
            time.sleep(0.01)
        assert not other.begin(Path("another.nbc"))
        assert other.begin(FORM)
    finally:
        other.close()


def test_what_a_process_began_that_ends_is_compiled_here(monkeypatch):
    monkeypatch.setattr(compiler, "SERVE", saying(f"{compiler.BEGUN} {FORM}", 0.3))
    other = compiler.Compiler({})
    while not other._begun:
        time.sleep(0.01)
    assert not other.begin(FORM)
    other.close()


def test_it_ends_with_the_command():
    given = {"system": "chen", "parameters": {}}
    asked = json.dumps({"command": "flow", "shared": [], "given": given})
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    with subprocess.Popen(compiler.SERVE, text=True, **pipes) as process:
        process.stdin.write(asked + "\n")
        process.stdin.flush()
        time.sleep(0.3)
        process.stdin.close()
        assert process.wait(20) == 1


def test_it_is_started_where_something_is_to_be_made(fresh, job):
    (fresh / "two.toml").write_text(FILE)
    two = str(fresh / "two.toml")
    assert job("flow", two) == {"shared": ["derivations.declare.lane_frame:SHARED", compiler.EVALUATED]}
    assert job("flow", two, parameters={"tier": "sampled"}) is None
    for more in ({"threads": 1}, {"backend": "jax"}):
        assert job("flow", two, **more) is None
    compile.common(SLOPED.group)
    assert job("flow", two) == {"shared": [compiler.EVALUATED]}
    compile.common(derivative.EVALUATED)
    assert job("flow", two) is None
    compile.common(liao.COMMON)
    assert job("flow", "liao") == {"shared": [compiler.STEPPED]}  # of 1,725 numbers
    assert job("flow", "liao", parameters={"m": "3", "m_star": "2"}) is None
    compile.common(dop853.COMPILED)
    assert job("flow", "liao") is None  # what it is followed by is called by all else
    assert job("flow", "kawata") == {"shared": [compiler.BLOCKS]}
    compile.common(block_addresses.COMMON)
    assert job("flow", "kawata")["command"] == "flow"
    assert job("flow", "pruning")["command"] == "flow"
    prepare(Case.build("pruning", {}))
    assert job("flow", "pruning") is None
    small = {"J": "3", "d": "30"}
    assert job("sgd", "kawata", parameters=small, method="explicit") is None
    assert job("sgd", "kawata", parameters=small, method="compressed")["shared"] == ["odesim.sgd.compressed:SHARED"]
    compile.common(compressed.COMMON)
    assert job("sgd", "kawata", parameters=small, method="compressed")["shared"] == []
    assert job("sgd", "kawata", parameters=small, method="compressed")["command"] == "sgd"
    prepare(Case.build("kawata", {}))
    assert job("sgd", "kawata", parameters=small, method="compressed") is None


def test_a_large_flow_has_its_steps_compiled_after_what_it_calls(fresh, job):
    assert job("flow", "liao")["shared"][0] == "derivations.liao.loops:SHARED"
    assert job.given == [
        {"shared": ["derivations.liao.loops:SHARED", compiler.EVALUATED]},
        {"shared": [compiler.STEPPED]},
    ]
    job("flow", "liao", parameters={"m": "3", "m_star": "2"})
    assert job.given[1:] == [{}]


def test_passes_over_pattern_data_are_compiled_beside_the_functions_of_a_model(fresh, job):
    small, passes = {"M": "4", "J": "3", "K": "2", "d": "20"}, "odesim.sgd.pattern_addresses"
    for method in ("explicit", "compressed"):
        assert job("sgd", "chen", parameters=small, method=method)["shared"] == [f"{passes}:SHARED"]
    assert job("sgd", "chen", parameters=small, method="explicit", backend="jax") is None
    compile.common(pattern_addresses.COMMON)
    assert job("sgd", "chen", parameters=small, method="explicit") is None
    system = find_system("chen")
    counted_first = (f"{passes}:SHARED_COUNTED", f"{passes}:SHARED")
    parameters = system.parameters(**{name: int(value) for name, value in small.items()}, laws="points", P=3)
    model = system.dynamics("train").truth(parameters)
    assert families.ahead(model, parameters, True, 10**6) == counted_first
    assert families.ahead(model, parameters, False, 10**6) == counted_first[1:]


def test_a_step_calls_what_is_compiled_ahead_in_one_form():
    compressed.addresses.cache_clear()  # of modules that another test has forgotten
    odesim.simulate("liao", m=3, m_star=2, d=30, method="compressed", step_size=0.01, batch=8, until=0.02)
    for one in compressed.SHARED:
        made = compile.common(one.group)[one.name]
        assert made.bare().signatures == [addressed.types_of(one.signature)] and not made.signatures


@pytest.mark.parametrize(
    ("system", "wanted"),
    [("liao", ()), ("kawata", ("loss",)), ("chen", ("watch",)), ("pmoe", ()), ("pruning", ("loss", "watch"))],
)
def test_what_a_flow_calls_after_its_first_function(system, wanted):
    assert compiler._later(prepare(Case.build(system, {})).equations) == wanted
