"""The functions of every tier are named with what they are for, and take the arguments of it."""

import inspect

import pytest

import derivations
from derivations.contract import Stepped, UsageError, load
from derivations.contract.equations import BOTH, HEADS


def tiers(name):
    """The equations of every tier of a system that its default parameters have."""
    system = derivations.system(name)
    for stage in system.stages:
        for tier in stage.tiers if stage.equations else ():
            try:
                yield load(stage.equations)(system.parameters(), tier)
            except UsageError:
                continue


@pytest.mark.parametrize("name", derivations.names())
def test_roles_name_functions_that_are_compiled_and_take_what_the_role_gives(name):
    found = list(tiers(name))
    assert found
    for equations in found:
        if equations.code.statement is not None:  # all functions are generated
            assert not equations.code.loops and not equations.code.roles
            assert len(equations.watched) == len(equations.code.statement().watched)
            continue
        functions = {reference.partition(":")[2]: reference for reference in equations.code.loops}
        assert len(functions) == len(equations.code.loops)
        assert len({"flow", *BOTH} & set(equations.code.roles)) == 1
        assert ("march" in equations.code.roles) == isinstance(equations.advance, Stepped)
        assert ("watch" in equations.code.roles) == bool(equations.watched)
        for role, function in equations.code.roles.items():
            taken = tuple(inspect.signature(inspect.unwrap(load(functions[function]))).parameters)
            assert taken[: len(HEADS[role])] == HEADS[role]
            assert equations.code.takes is None or len(taken) == len(HEADS[role]) + 1
