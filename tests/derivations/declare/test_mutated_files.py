"""Files that were valid and are no longer: each states a model, or is refused in one sentence; nothing else happens."""

import random
import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from derivations.contract import UsageError
from derivations.declare import initial, reading, system, tiers
from odesim.cli import _run as command

VALID = (
    """title = "Soft committee machine, online"
source = "Saad & Solla 1995"
paper = "On-line learning in soft committee machines"
[student]
units = 3
unit = "erf(w/sqrt(2))"
output = "trained"
[teacher]
units = 2
unit = "erf(w/sqrt(2))"
gram = [[1.0, 0.2], [0.2, 1.0]]
noise = 0.1
[training]
loss = "squared"
weights = "free"
limit = "online"
step = 0.5
trained = ["w", "a"]
[start]
norm = 0.5
a = 0.7
""",
    """[student]
unit = "logistic(beta*v)*He(3, w)"
units = 2
[training]
weights = "sphere"
decay = 0.0
[start]
norm = {v = 1.0, w = 1.0}
overlap = 0.1
[parameters]
beta = {default = 1.5, meaning = "sharpness", minimum = 0.0}
[[event]]
name = "escape"
of = "M_ww"
threshold = 0.5
absolute = true
[[claim]]
id = "escape"
statement = "late"
measure = "first time max(abs(M_ww)) >= 0.5"
over = {d = [1e3, 1e4, 1e5, 1e6], seeds = 6}
law = {power = 0.5, rivals = [0.0, 1.0]}
""",
    """[student.fast]
unit = "softmax(v + b)*He(2, w)"
units = 2
output = "1/j"
[student.slow]
unit = "relu(w)"
[teacher]
noise = 0.2
[teacher.one]
unit = "tanh(w)"
units = 3
[training]
loss = "log(1 + (f - y)^2/scale)"
trained = ["w", "b", "fast_v"]
[parameters]
b = {default = 0.2, per = "unit"}
scale = 2.0
""",
    """name = "small"
[student]
unit = "wick(2, w) + exp(-w^2)"
[teacher]
unit = "w^2 - 1"
gram = 0.0
[training]
loss = "correlation"
batch = 4
[start]
Q_ww = [[1.0]]
M_ww = [[0.3]]
""",
)
VALUES = (
    "0", "-1", "1e9", "1e999", "nan", "-inf", "true", '"x"', "''", "[]", "[[]]", "[1]", "[[1.0, 2.0], [3.0]]", "{}",
    "{a = 1}", "1979-05-27", '"w"', '"w^2"', '"exp(w^2)"', '"1/w"', '"f"', '"softmax(v)*w"', '"sum"', '"He(13, w)"',
    '"j"', "[['x']]", '["w"]', "99999999999999999999999", "0.5", "2", '"M_ww"', '"a"', "[[1.0]]", '"\\u0000"', '"é"',
)  # fmt: skip
TOKENS = (
    "[",
    "]",
    "(",
    ")",
    "*",
    "^",
    "/",
    "-",
    "+",
    ",",
    ".",
    "=",
    '"',
    "w",
    "v",
    "a",
    "9",
    "0",
    "e",
    "\n",
    "#",
    "\0",
)


def mutated(seed):
    """A valid file with one to three of its bytes, lines, values, keys or tokens changed."""
    rng = random.Random(seed)
    text: str = str(rng.choice(VALID))
    for _ in range(rng.randint(1, 3)):
        lines: list[str] = text.split("\n")
        at = rng.randrange(len(lines))
        kind = rng.randrange(8)
        if kind == 0:  # a value of another type or size
            lines[at] = re.sub(r"=.*", lambda _: f"= {rng.choice(VALUES)}", lines[at])
        elif kind == 1:
            del lines[at]
        elif kind == 2:
            lines.insert(rng.randrange(len(lines)), lines[at])
        elif kind == 3:  # a number
            lines[at] = re.sub(r"\d+(\.\d+)?", lambda _: rng.choice(("0", "-3", "7", "1e5", "1e-9", "nan")), lines[at])
        elif kind == 4:  # a key
            lines[at] = re.sub(r"^\w+", lambda word: word[0][:-1] + rng.choice("abwxyz_"), lines[at])
        elif kind == 5:  # two lines change places
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        text = "\n".join(lines)
        place = rng.randrange(len(text) or 1)
        if kind == 6:
            text = text[:place] + rng.choice(TOKENS) + text[place + 1 :]
        elif kind == 7:
            text = text[:place] + rng.choice(TOKENS) + text[place:]
    content = text.encode("utf-8", "replace")
    if rng.random() < 0.1:
        place = rng.randrange(len(content) or 1)
        content = content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]
    return content


seen = {"stated": 0, "refused": 0}


@settings(max_examples=500, derandomize=True, deadline=None, database=None)
@given(seed=st.integers(0, 10**9))
def one_file(folder, seed):
    path = folder / "m.toml"
    path.write_bytes(mutated(seed))
    try:
        made = system.system(reading.from_file(path))
        parameters = made.parameters()
        made.check(parameters)
        initial.enter(parameters, None, np.random.default_rng(0))
        said = "stated"
    except UsageError as error:
        said = str(error)
    seen["stated" if said == "stated" else "refused"] += 1
    assert said and "\n" not in said and len(said) < 1000


def test_every_mutated_file_states_a_model_or_is_refused(tmp_path):
    one_file(tmp_path)
    assert min(seen.values()) > 25  # both happen, or the mutations are too weak or too strong to say anything


def test_the_command_answers_mutated_files_by_its_documented_codes(tmp_path, monkeypatch, capsys):
    """With the tier given none is derived: what is taken is only asked for what it would run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tiers, "settled", lambda parameters: "sampled")
    codes = []
    for seed in range(30):
        (tmp_path / "m.toml").write_bytes(mutated(seed))
        words = ["--until", "1", "--dry-run", "--quiet"]
        codes.append(command(["integrate", "--system", "m.toml", *words]))
        said = capsys.readouterr().err
        assert codes[-1] in (0, 2) and "internal error" not in said and said.count("\n") == (codes[-1] == 2), said
        assert [entry.name for entry in tmp_path.iterdir()] == ["m.toml"]
    assert {0, 2} <= set(codes)
