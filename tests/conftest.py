"""Set-up of all tests: float64 and few threads for JAX, shapes and types checked while the tests run."""

import ast
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import types
import typing

# JAX reads these when it is first imported, which is left to the tests that need it.
os.environ["JAX_ENABLE_X64"] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC"):
    os.environ.setdefault(_name, "2")
os.environ.setdefault("MPLBACKEND", "agg")

import pytest  # noqa: E402

PACKAGES = ("hermite", "derivations", "odesim")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--gpu`: this machine is supposed to have a GPU."""
    parser.addoption("--gpu", action="store_true", help="fail, rather than skip, where a GPU is missing")


def pytest_configure(config: pytest.Config) -> None:
    """Let JAX see a GPU where one is asked for."""
    if config.getoption("--gpu"):
        os.environ.pop("JAX_PLATFORMS", None)


def known(hint: object, names: dict) -> bool:
    """Return True if an annotation and its parts can be evaluated in its module, without imports of type checkers."""
    if isinstance(hint, (str, typing.ForwardRef)):
        hint = read(hint, names)
    if typing.get_origin(hint) is typing.Literal:
        return True
    parts = typing.get_args(hint)[:1] if typing.get_origin(hint) is typing.Annotated else typing.get_args(hint)
    return hint is not UNKNOWN and all(
        known(part, names) for one in parts for part in (one if isinstance(one, list) else [one])
    )


UNKNOWN = object()
SHAPES = ("Bool", "Complex", "Float", "Float64", "Inexact", "Int", "Num", "Shaped")
"""The array types of jaxtyping: modules import them for type checkers alone, as they take 60 ms at every start."""


def read(hint: object, names: dict) -> object:
    """The value of an annotation in quotes; `UNKNOWN` if it needs an import that only type checkers make."""
    import jaxtyping

    shapes = {name: getattr(jaxtyping, name) for name in SHAPES}
    try:
        return eval(getattr(hint, "__forward_arg__", hint), {**shapes, **names})
    except (NameError, AttributeError, TypeError):
        return UNKNOWN


def checked(function):
    """A function whose annotations are checked at every call; numba is given the one below (`inspect.unwrap`).

    Types by beartype; where an array has a shape, jaxtyping sees that its letters mean one number in the whole call.
    """
    from beartype import BeartypeConf, beartype

    # A whole number is welcome where a float is expected, as every type checker has it.
    check = beartype(conf=BeartypeConf(is_pep484_tower=True))
    shaped = False
    for name, hint in list(function.__annotations__.items()):
        text = hint if isinstance(hint, str) else getattr(hint, "__forward_arg__", "")
        if not known(hint, function.__globals__):
            del function.__annotations__[name]
        elif any(f"{shape}[" in text for shape in SHAPES):
            function.__annotations__[name] = read(hint, function.__globals__)
            shaped = True
    if not shaped:
        return check(function)
    import jaxtyping

    return jaxtyping.jaxtyped(function, typechecker=check)


def checked_class(made):
    """A class whose fields are checked when a dataclass is made; its methods are already."""
    if "__dataclass_fields__" in vars(made) and "__init__" in vars(made):
        made.__init__ = checked(made.__init__)
    return made


def decorate(node: ast.AST) -> None:
    """Decorate every function and class of a module, but those inside functions: they would be at every call."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef):
            inner.decorator_list.append(ast.copy_location(ast.Name("__checked__", ast.Load()), inner))
        elif isinstance(inner, ast.stmt | ast.excepthandler):
            decorate(inner)
            if isinstance(inner, ast.ClassDef):
                inner.decorator_list.insert(0, ast.copy_location(ast.Name("__checked_class__", ast.Load()), inner))


class CheckedLoader(importlib.machinery.SourceFileLoader):
    """Loads a module with its annotations checked; its byte code is kept nowhere, least of all beside the plain one."""

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        decorate(tree)
        return compile(tree, path, "exec", dont_inherit=True)

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module).update(__checked__=checked, __checked_class__=checked_class)
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of our packages for the loader that checks them."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> object:
        if fullname.split(".")[0] not in PACKAGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)  # type: ignore[arg-type]
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = CheckedLoader(fullname, spec.loader.path)
        return spec


def check_annotations() -> None:
    """Check every annotation of our packages at run time.

    By a hook of our own: that of jaxtyping costs about 15 microseconds a call of any function, with shapes or without,
    and beartype's own refuses names that stand under `TYPE_CHECKING`.
    """
    loaded = [name for name in PACKAGES if name in sys.modules]
    assert not loaded, f"imported before their annotations could be checked: {loaded}"
    sys.meta_path.insert(0, Finder())


# At import, before any conftest further down can import our packages.
if not os.environ.get("ODESIM_UNCHECKED") and importlib.util.find_spec("beartype"):
    check_annotations()


from odesim.machine import ownership, programs  # noqa: E402

ownership.claim_process()

programs.keep()  # before JAX is imported; half of what these tests wait for is XLA


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what the collected modules hold: numba and SymPy make it run often."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Seal what XLA has compiled: a worker of xdist leaves without being asked."""
    if programs.FOLDER in os.environ:
        programs.seal_all(pathlib.Path(os.environ[programs.FOLDER]))


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> object:
    """A GPU; without one the test is skipped, or fails under `--gpu`."""
    import jax

    try:
        return jax.devices("gpu")[0]
    except RuntimeError as error:
        if request.config.getoption("--gpu"):
            pytest.fail(f"--gpu was given, but JAX finds no GPU: {error}")
        pytest.skip("no GPU here")
