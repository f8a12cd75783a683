"""Compiled functions as other compiled functions see them: linked into the caller, with no machine code of their own.

For every function that another one calls, numba optimises it, makes its machine code, its entries for Python and for C
and a file of its cache, links it into the caller, and does all that again there, and again in the caller's caller: more
than half of kawata's first run, whose integrator is six calls deep.  Here a function that is called from compiled code
is typed, lowered and linked; what Python calls is optimised, with all that it calls, and made machine code once.

A constant among the arguments has the type of a variable, so that one form serves all calls.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, cast

import numba
from numba import _dynfunc
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering
from numba.core.typing import templates


class Part(JITCodeLibrary):
    """The intermediate code of one function and of those it calls, to be linked and not to be run."""

    def _optimize_final_module(self) -> None:
        """Left to whoever is run: the optimiser then sees all of it at once."""

    def _finalize_final_module(self) -> None:
        """As the inherited method, without giving the module to the engine, which would make machine code of it."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerPart(NativeLowering):
    """Numba's lowering into a `Part`."""

    _name = "odesim_lower_part"

    def run_pass(self, state: Any) -> Any:
        """Lower; the entry point, by which callers find the function, points nowhere."""
        state.flags.no_compile = True
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        NativeLowering.run_pass(self, state)
        lowered, library = state["cr"], state.library
        name = lowered.fndesc
        entry = _dynfunc.make_function(name.lookup_module(), name.qualname, "", 0, lowered.env, (library,))
        state.targetctx.insert_user_function(entry, name, [library])
        if hasattr(library, "_reload_init"):  # from numba 0.63 on
            state.reload_init.extend(library._reload_init)
        state["cr"] = lowered._replace(cfunc=entry)
        return True


class PartCompiler(CompilerBase):
    """Numba's compiler with its last pass exchanged."""

    def define_pipelines(self) -> list[Any]:
        """Its usual passes, but for the lowering."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = [(LowerPart if step is NativeLowering else step, why) for step, why in manager.passes]
        manager.finalize()
        return [manager]


BARE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
LINKED: dict[str, Any] = {"pipeline_class": PartCompiler, **BARE}


@contextlib.contextmanager
def overloads() -> Iterator[None]:
    """While this lasts, what numba itself is written in (`np.empty`, `reshape`, ..) is linked in the same way.

    Each of those is a function of Python's, compiled for every type that it meets and made machine code of, though only
    compiled code can call it: up to a twelfth of the processor time of a first run.
    """
    template: Any = templates._OverloadFunctionTemplate
    before = template._get_jit_decorator
    template._get_jit_decorator = lambda self: functools.partial(before(self), **LINKED)
    try:
        yield
    finally:
        template._get_jit_decorator = before


@functools.cache
def tables() -> None:
    """Import the tables by which numba compiles, but not SciPy's linear algebra.

    Numba imports that to see that it is there, as it is: odesim depends on it.  Whatever calls it imports it later.
    """
    import numba.np.linalg as algebra

    asked: Any = algebra
    before = asked.ensure_blas
    asked.ensure_blas = lambda: None
    try:
        import numba.np.arraymath as math
    finally:
        asked.ensure_blas = before
    cast(Any, math).ensure_blas = before


def link(function: Any, prepare: Callable[[Any], None]) -> None:
    """Let compiled callers of a numba dispatcher link its `Part`; Python's calls of it stay as they are.

    `prepare` is done to the dispatchers of other forms, as to that of any function.

    Never what Python has compiled already: the caller's machine code would depend on the order of the calls.
    `function.part()` is the dispatcher of the linked form, `function.bare()` that of what is called by its address
    (`odesim.code.addressed`): machine code without entries, which take a tenth of the time of its compilation.
    """

    def form(options: dict[str, Any]) -> Any:
        wanted: dict[str, Any] = {**function.targetoptions, **options}
        del wanted["nopython"]  # which is what njit means
        made: Any = numba.njit(**wanted)(function.py_func)
        prepare(made)
        return made

    @functools.cache
    def part() -> Any:
        return form(LINKED)

    @functools.cache
    def bare() -> Any:
        made = form(BARE)
        made._cache = function._cache.of("bare")
        return made

    def get_call_template(args: Any, kws: Any) -> Any:
        plain = tuple(types.unliteral(argument) for argument in args)
        return part().get_call_template(plain, {key: types.unliteral(value) for key, value in kws.items()})

    def get_overload(signature: Any) -> Any:
        return part().get_overload(signature)

    function.part, function.bare = part, bare
    function.get_call_template, function.get_overload = get_call_template, get_overload
