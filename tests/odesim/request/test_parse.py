"""Words from a command line become values of the declared type, or one clear sentence."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivations.contract import UsageError
from odesim.request.parse import expression, nearest, parse, parse_assignments, parse_parameters


@pytest.mark.parametrize(
    ("word", "value"),
    [("25", 25), ("1e6", 10**6), ("1E3", 1000), ("25.0", 25), ("-3", -3), ("1_000", 1000), (7.0, 7)],
)
def test_whole_numbers_may_be_written_with_exponents(word, value):
    read = parse(word, int, "size")
    assert read == value
    assert type(read) is int


def test_a_large_power_of_ten_is_exact():
    assert parse("1e23", int, "size") == 10**23  # as a float it would be 99999999999999991611392


@pytest.mark.parametrize("word", ["2.5", "many", "", "inf", "nan", True, None, 2.5, "1e"])
def test_what_is_no_whole_number_is_refused(word):
    with pytest.raises(UsageError, match="size must be a whole number"):
        parse(word, int, "size")


@pytest.mark.parametrize(("word", "value"), [("0.5", 0.5), ("1e-8", 1e-8), ("1/4", 0.25), (3, 3.0), ("-2", -2.0)])
def test_real_numbers_may_be_decimal_or_fractions(word, value):
    assert parse(word, float, "rate") == value


@pytest.mark.parametrize("word", ["fast", "inf", "nan", "1/0", False, ""])
def test_what_is_no_finite_number_is_refused(word):
    with pytest.raises(UsageError, match="rate must be a finite number"):
        parse(word, float, "rate")


@pytest.mark.parametrize("kind", [int, float, bool, str, tuple[int, ...], Literal["a", "b"]])
def test_a_number_that_nothing_can_hold_is_refused_by_every_kind(kind):
    for number in (10**400, 10**5000):  # Python writes no number of more than 4,300 digits
        with pytest.raises(UsageError, match="x must be"):
            parse(number, kind, "x")


def test_nested_brackets_are_no_list():
    with pytest.raises(UsageError, match="must be a list"):
        parse("[" * 100_000, tuple[int, ...], "x")


@pytest.mark.parametrize("text", ["(" * 300, "-" * 399 + "1", "1+" * 5000 + "1", "9" * 400])
def test_long_or_deep_expressions_are_a_sentence(text):
    with pytest.raises(UsageError, match="not a positive number") as refused:
        expression(text, {}, "--until")
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize(("word", "value"), [("true", True), ("No", False), ("on", True), ("0", False), (True, True)])
def test_switches_are_read(word, value):
    assert parse(word, bool, "noisy") is value


def test_a_switch_is_not_a_number():
    with pytest.raises(UsageError, match="noisy must be true or false"):
        parse("2", bool, "noisy")


@pytest.mark.parametrize("word", ["1,-1", "[1, -1]", "(1,-1)", [1, -1], (1.0, "-1")])
def test_lists_are_read_with_commas_or_as_json(word):
    assert parse(word, tuple[int, ...], "signs") == (1, -1)


@pytest.mark.parametrize("word", ["1,0;0,2.5", "[[1,0],[0,2.5]]", [[1, 0], [0, 2.5]]])
def test_lists_of_lists_are_read_with_semicolons_or_as_json(word):
    assert parse(word, tuple[tuple[float, ...], ...], "table") == ((1.0, 0.0), (0.0, 2.5))


def test_one_list_is_a_list_of_one_list():
    assert parse("1,2", tuple[tuple[float, ...], ...], "table") == ((1.0, 2.0),)


def test_a_list_of_fixed_length_is_refused_at_another_length():
    with pytest.raises(UsageError, match="list of 2 values"):
        parse("1,2,3", tuple[int, int], "pair")


def test_a_union_takes_the_first_type_that_fits():
    assert parse("none", int | None, "size") is None
    assert parse("4", int | str, "size") == 4
    assert parse("four", int | str, "size") == "four"


@given(st.integers(min_value=-(10**30), max_value=10**30))
def test_every_whole_number_survives_being_written(number):
    assert parse(str(number), int, "size") == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_survives_being_written(number):
    assert parse(repr(number), float, "rate") == number


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"sizes": "3"}, "unknown parameter 'sizes'; did you mean 'size'"),
        ({"zzzzzz": "3"}, "unknown parameter 'zzzzzz'; known: size, rate"),
        ({"size": "0"}, "parameter size must be at least 1, but 0 was given"),
        ({"size": "1e4"}, "parameter size must be at most 1000, but 10000 was given"),
        ({"rate": "0"}, "parameter rate must be above 0, but 0.0 was given"),
        ({"tier": "exakt"}, "must be one of exact, coarse, but 'exakt' was given; did you mean 'exact'"),
    ],
)
def test_each_wrong_parameter_has_its_sentence(tiny, given, sentence):
    with pytest.raises(UsageError, match=sentence):
        parse_parameters(tiny.parameters, given)


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [(["size"], "-p expects NAME=VALUE"), (["=3"], "-p expects NAME=VALUE"), (["a=1", "a=2"], "given twice")],
)
def test_each_wrong_assignment_has_its_sentence(pairs, sentence):
    with pytest.raises(UsageError, match=sentence):
        parse_assignments(pairs)


def test_an_assignment_is_split_at_its_first_equals_sign():
    assert parse_assignments(["link=a=b", " size =3"]) == {"link": "a=b", "size": "3"}


def test_the_nearest_word_ignores_capitals():
    assert nearest("LIAO", ["kawata", "liao"]) == "did you mean 'liao'?"


WHOLE = "must be a whole number such as 25 or 1e6"


@pytest.mark.parametrize(
    ("kind", "expected", "beside"),
    [
        (int | Literal["all"], WHOLE, "it can also be all"),
        (Literal["all"] | int, WHOLE, "it can also be all"),
        (int | None, WHOLE, "it can also be none"),
        (Literal["all", "few"] | None, "must be one of all, few", "it can also be none"),
    ],
)
def test_a_refusal_names_the_words_that_are_taken_beside_numbers(kind, expected, beside):
    with pytest.raises(UsageError) as caught:
        parse("every", kind, "count")
    assert str(caught.value) == f"count {expected}, but 'every' was given; {beside}."


def test_the_inputs_of_pruning_are_a_number_or_all():
    import odesim

    with pytest.raises(UsageError, match=f"n_test {WHOLE}, but 'every' was given; it can also be all"):
        odesim.derive("pruning", n_test="every")
