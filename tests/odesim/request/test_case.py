"""A request is resolved in a fixed order, and everything that cannot be met is refused with a sentence."""

import hashlib

import numpy as np
import pytest

from derivations.contract import UsageError
from odesim.request.case import Case


def test_defaults_are_those_of_the_system_and_the_stage(tiny):
    case = Case.build(tiny)
    assert (case.stage, case.tier, case.until, case.save_points) == ("decay", "exact", 4.0, 201)
    assert (case.seed, case.rtol, case.atol, case.backend, case.solver) == (0, 1e-8, None, "numba", None)
    assert case.explicit == frozenset()
    assert case.options == frozenset()


def test_preset_file_and_explicit_values_override_in_this_order(tiny, tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('preset = "slow"\nsave-points = 11\nseed = 4\n[parameters]\nsize = 7\nsigns = [1, 1]\n')
    case = Case.build(tiny, {"signs": "-1"}, config=file, seed="5")
    assert case.parameters.rate == 0.1  # the preset
    assert case.parameters.size == 7  # the file, over the preset
    assert case.parameters.signs == (-1,)  # explicit, over the file
    assert (case.seed, case.save_points, case.until) == (5, 11, 40.0)
    assert case.explicit == {"size", "signs"}
    assert case.options == {"seed", "save_points"}


def test_an_explicit_preset_replaces_that_of_the_file(tiny, tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('preset = "none such"\n')
    assert Case.build(tiny, preset="slow", config=file).parameters.size == 5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"preset": "slo"}, "tiny has no preset 'slo'; did you mean 'slow'"),
        ({"stage": "deca"}, "tiny has no stage 'deca'; did you mean 'decay'"),
        ({"stage": "all"}, "a run takes one stage"),
        ({"seed": -1}, "--seed must not be negative"),
        ({"seed": "x"}, "--seed must be a whole number"),
        ({"until": 0}, "--until must be above 0"),
        ({"until": "soon"}, "--until must be a finite number"),
        ({"save_points": 1}, "--save-points must be at least 2"),
        ({"rtol": -1e-8}, "--rtol must lie between 0 and 1"),
        ({"rtol": 0}, "--rtol must lie between 0 and 1"),
        ({"rtol": 1.0}, "--rtol must lie between 0 and 1"),
        ({"atol": -1e-9}, "--atol must be at least 0"),
        (
            {"backend": "jaxx"},
            "--backend must be one of numba, jax, but 'jaxx' was given; did you mean 'jax'",
        ),
        ({"tolerance": 1}, "unknown option 'tolerance'"),
        ({"config": "nowhere.toml"}, "cannot read the file nowhere.toml of --config"),
        ({"initial": "nowhere.npz"}, "cannot read the file nowhere.npz of --initial"),
    ],
)
def test_each_wrong_option_has_its_sentence(tiny, options, sentence):
    with pytest.raises(UsageError, match=sentence):
        Case.build(tiny, **options)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("seed = ", "is not a valid TOML file"),
        ("sed = 3", "unknown key of .* 'sed'; did you mean 'seed'"),
        ("parameters = 3", "must be a table"),
        ('system = "liao"', "is for system 'liao', but you asked for 'tiny'"),
        ("[parameters]\nsiez = 3", "unknown parameter 'siez'; did you mean 'size'"),
        ("until = true", "--until must be a finite number"),
    ],
)
def test_each_wrong_file_has_its_sentence(tiny, tmp_path, text, sentence):
    file = tmp_path / "run.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=sentence):
        Case.build(tiny, config=file)


def test_an_unknown_system_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="unknown system 'laio'; did you mean 'liao'"):
        Case.build("laio")


def test_the_system_checks_what_no_single_domain_can_say(tiny):
    with pytest.raises(UsageError, match="size must not be 13"):
        Case.build(tiny, {"size": 13})


def test_sizes_come_from_the_initial_arrays(tiny):
    case = Case.build(tiny, initial={"y": np.ones(8)})
    assert case.parameters.size == 8
    assert case.initial is not None


def test_an_explicit_size_that_disagrees_with_the_file_is_refused(tiny):
    with pytest.raises(UsageError, match="the file has size 8, but -p size=3"):
        Case.build(tiny, {"size": 3}, initial={"y": np.ones(8)})


def test_a_size_from_a_file_is_held_to_the_domain(tiny):
    with pytest.raises(UsageError, match="size must be at most 1000"):
        Case.build(tiny, initial={"y": np.ones(1001)})


def test_arrays_that_are_no_numbers_are_refused(tiny):
    with pytest.raises(UsageError, match="must hold real numbers"):
        Case.build(tiny, initial={"y": np.array(["a"])})


def test_files_that_are_no_npz_are_refused(tiny, tmp_path):
    text, single, pickled = tmp_path / "a.npz", tmp_path / "b.npy", tmp_path / "c.npz"
    text.write_text("no arrays")
    np.save(single, np.ones(3))
    np.savez(pickled, y=np.array([{}], dtype=object))
    for path, sentence in [
        (text, "not a valid .npz"),
        (single, "a single array"),
        (pickled, "not a valid .npz"),
    ]:
        with pytest.raises(UsageError, match=sentence):
            Case.build(tiny, initial=path)


def test_equal_requests_have_equal_digests_however_they_are_written(tiny, tmp_path):
    file = tmp_path / "run.toml"
    file.write_text("seed = 3\n[parameters]\nsize = 10\n")
    spelled = Case.build(tiny, {"size": "1e1"}, seed="3", until="4.0")
    assert spelled.digest == Case.build(tiny, config=file).digest
    assert len(spelled.digest) == 12
    assert int(spelled.digest, 16) >= 0


def test_whatever_changes_the_answer_changes_the_digest(tiny):
    variants = [
        {},
        {"seed": 1},
        {"until": 3},
        {"save_points": 5},
        {"rtol": 1e-9},
        {"atol": 1e-9},
        {"backend": "jax"},
        {"solver": "x"},
        {"stage": "prune"},
        {"parameters": {"size": 4}},
        {"parameters": {"tier": "coarse"}},
        {"initial": {"y": np.ones(3)}},
        {"initial": {"y": np.zeros(3)}},
    ]
    digests = {Case.build(tiny, **variant).digest for variant in variants}
    assert len(digests) == len(variants)


def test_the_digest_is_the_hash_of_the_request_in_sorted_json(tiny):
    # Stored runs are found by it, so neither the form nor a default may drift unnoticed.
    written = (
        '{"atol":null,"backend":"numba","initial":null,"method":"flow","parameters":{"noisy":false,"note":null,'
        '"rate":1.0,"signs":[1,-1],"size":3,"table":[[1.0]],"tier":"exact"},"rtol":1e-08,"save_points":201,"seed":0,'
        '"solver":null,"stage":"decay","system":"tiny","tier":"exact","until":4.0}'
    )
    assert Case.build(tiny).digest == hashlib.sha256(written.encode()).hexdigest()[:12]
