"""`odesim export` and `odesim conventions`, and checkpoints on the command line of `odesim observe`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np


def test_a_script_is_printed_or_written_and_its_log_observed(odesim_command, tmp_path):
    asked = (
        "export",
        "--system",
        "saad_solla_1995_step",
        "--to",
        "numpy",
        "-p",
        "d=60",
        "-p",
        "step=0.5",
        "--until",
        "2",
    )
    printed = odesim_command(*asked, "--save-points", "9")
    assert printed.code == 0 and printed.out.startswith('"""One erf unit')
    written = odesim_command(*asked, "--save-points", "9", "-o", "train.py")
    assert written.code == 0 and (tmp_path / "train.py").read_text() == printed.out
    assert odesim_command(*asked, "-o", "train.py").code == 2  # it is there
    assert odesim_command(*asked, "-o", "train.py", "--overwrite", "--json").json["to"] == "numpy"
    (tmp_path / "train.py").write_text(printed.out)
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, check=True)
    (line,) = (one.split() for one in printed.out.splitlines() if one.strip().startswith("odesim observe"))
    # In a process of its own: commands of these tests have another integrator.
    words = [sys.executable, "-m", "odesim", *line[1:], "--out", "mine", "--no-figures", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    seen = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert seen.returncode == 0, seen.stderr
    summary = json.loads(seen.stdout)["summary"]
    assert summary["snapshots"] == 9 and "step=0.5" in line and "clock" in summary


def test_what_cannot_be_exported_is_one_sentence(odesim_command):
    for words, said in (
        (("--system", "lee_2021", "--to", "torch"), "trained in several stages"),
        (("--system", "liao", "--to", "torch"), "not a declared model"),
        (("--system", "saad_solla_1995", "--to", "julia"), "--to must be one of torch, numpy, jax"),
    ):
        answer = odesim_command("export", *words)
        assert answer.code == 2 and said in answer.err and answer.err.count("\n") == 1


def test_conventions_are_a_table_and_json(odesim_command):
    asked = ("conventions", "--system", "saad_solla_1995_step", "-p", "d=500", "-p", "batch=8")
    table = odesim_command(*asked)
    assert table.code == 0 and "loss summed over the 8 samples of a batch" in table.out
    found = odesim_command(*asked, "--json").json
    rows = {row["name"]: row for row in found["conventions"]}
    assert rows["sum_over_batch"]["factor"] == 8 and rows["declared"]["rates"] == {"w": 0.002}
    assert odesim_command("conventions", "--system", "kawata").code == 2


def test_checkpoints_are_observed_with_a_mapping(odesim_command, tmp_path):
    rng = np.random.default_rng(0)
    for k in range(3):
        np.savez(tmp_path / f"{k}.npz", kernel=rng.normal(size=(10, 2)))
    np.savez(tmp_path / "teacher.npz", target=np.eye(10)[:3])
    given = ("0.npz", "1.npz", "2.npz", "teacher.npz", "--map", "kernel=w.T", "--map", "target=w_star")
    done = odesim_command(
        "observe", *given, "--times", "0,1,2", "-s", "saad_solla_1995", "--out", "seen", "--no-figures", "--json"
    )
    assert done.code == 0 and done.json["summary"]["snapshots"] == 3
    bad = odesim_command("observe", *given, "--times", "0,one", "-s", "saad_solla_1995", "--out", "bad")
    assert bad.code == 2 and "--times" in bad.err
