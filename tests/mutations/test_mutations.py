"""The lists of mutations fit the program: `make mutants` takes long, and a text that moved is noticed here."""

from collections import Counter

import pytest

from tests.mutations.__main__ import ROOT, listed

MUTATIONS = listed([])


def test_no_two_mutations_have_one_name():
    names = Counter((mutation["list"], mutation["name"]) for mutation in MUTATIONS)
    assert max(names.values()) == 1


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[f"{m['list']}: {m['name']}" for m in MUTATIONS])
def test_a_mutation_can_be_applied_and_its_tests_are_there(mutation):
    assert (ROOT / mutation["file"]).read_text(encoding="utf-8").count(mutation["old"]) == 1
    assert mutation["new"] != mutation["old"]
    for test in mutation["tests"]:
        path, _, function = test.partition("::")
        assert (ROOT / path).is_file() or (ROOT / path).is_dir()
        name = function.split("[")[0].split("::")[-1]
        assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")
