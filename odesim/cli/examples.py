"""Texts of `odesim --help`: a line about every command, and the examples at the end of its own help.

A test reads each of the examples as the command would.
"""

from collections.abc import Mapping, Sequence

CODES = (
    "Exit codes: 0 done; 1 `odesim verify --strict`, `odesim check --strict`: an answer differs from the expected one; "
    "2 usage; 3 numerical or storage failure; 4 missing device or extra; 70 an error in odesim; 130 interrupted."
)
SUMMARIES: Mapping[str, str] = {
    "systems": "List all systems, or describe one of them.",
    "derive": "Print the equations of motion of a system.",
    "integrate": "Integrate the equations of motion into a run folder.",
    "simulate": "Run finite-sample SGD, explicitly or exactly in law.",
    "compare": "Compare the ODE with SGD, or two stored runs.",
    "bands": "Compute bands of SGD around the flow at finite d.",
    "sensitivity": "Print how results depend on parameters.",
    "optimise": "Find the best schedule of the step, decay or noise.",
    "observe": "Measure the order parameters of your own weights.",
    "export": "Write a training script for PyTorch, NumPy or JAX.",
    "conventions": "Print learning rates and scales of other codes.",
    "verify": "Test the theorems of a paper against ODE and SGD.",
    "check": "Check a model: one page with verdict and grade.",
    "sweep": "Integrate or simulate at every point of a grid.",
    "atlas": "Find all stationary points and bifurcations of a model.",
    "figures": "Draw the figures of the papers and of odesim.",
    "report": "Write verdicts, figures and runs as one HTML page.",
    "explore": "Write an interactive page of runs or a sweep.",
    "exponents": "Print how hard a declared teacher is to learn.",
    "show": "Show the contents of a stored folder.",
    "plot": "Draw the pictures of a stored run again.",
    "doctor": "Examine this installation.",
    "warm": "Compile in advance, so that first runs are fast.",
    "cite": "Print BibTeX entries of a paper and of odesim.",
}
"""A command in one line, which `odesim --help` prints whole at a width of 80 columns."""
EXAMPLES: Mapping[str, Sequence[str]] = {
    "systems": ("odesim systems", "odesim systems liao"),
    "derive": (
        "odesim derive --system liao -p tier=riccati",
        "odesim derive --system kawata --format latex > kawata.tex",
        "odesim derive --system chen --explain",
    ),
    "integrate": (
        "odesim integrate --system liao -p m=25 -p d=1e6 --until '2*sqrt(d)'",
        "odesim integrate --system liao --stage all --until train=60,tune=90",
        "odesim integrate --from runs/liao-0123456789ab --stage prune",
        "odesim integrate --system liao --config mine.toml --out runs/mine",
        "odesim integrate --list-solvers",
    ),
    "simulate": (
        "odesim simulate --system liao --method compressed --step-size 1e-3 --batch 256 --seeds 8",
        "odesim simulate --system pmoe --method explicit --step-size 0.1 --batch 32 --until 2000",
    ),
    "compare": (
        "odesim compare --system liao -p d=1e3 --step-size 1e-3 --batch 256 --seeds 8 --until '0.5*sqrt(d)'",
        "odesim compare runs/first runs/second",
        "odesim compare --system saad_solla_1995_step --over d=100,400,1600,6400 --until 10",
    ),
    "bands": (
        "odesim bands --system saad_solla_1995_step -p d=1e3 --until 40",
        "odesim bands --system collins_woodfin_2023 --fresh-initial --of 'first time loss <= 0.1'",
    ),
    "sensitivity": (
        "odesim sensitivity --system arnaboldi_2023 --of 'first time error <= .1' --to step,noise,overlap",
        "odesim sensitivity --system saad_solla_1995_step -p overlap=.2 --of 'final error' --until 40",
    ),
    "optimise": (
        "odesim optimise --system saad_solla_1995_step -p overlap=.2 -p noise=.3 --minimise 'final error' --until 30",
        "odesim optimise --system arnaboldi_2023 --minimise 'first time error <= .1' --between 0,0.16",
    ),
    "observe": (
        "odesim observe weights.npz --system liao --out runs/mine",
        "odesim observe a.pt b.pt teacher.npz --system saad_solla_1995 --map fc.weight=w --times 0,10 --out runs/mine",
    ),
    "export": (
        "odesim export --system saad_solla_1995_step --to torch -p d=500 --out train.py",
        "odesim export --system softmax_mixture --to jax",
    ),
    "conventions": ("odesim conventions --system saad_solla_1995_step -p d=500 -p batch=8",),
    "verify": (
        "odesim verify --system liao --list",
        "odesim verify --system liao --claim lem-1 --workers 2",
        "odesim verify --system liao --explain lem-1",
        "odesim verify --system liao --effort full --strict --quiet",
    ),
    "check": (
        "odesim check saad_solla_1995",
        "odesim check liao --claim thm-1 --claim thm-2 --workers 2",
        "odesim check liao --step-size 1e-2 --batch 1000 --seeds 8 -p d=100 --until 30",
        "odesim check --compare runs/check-liao-quick-0123456789ab",
    ),
    "sweep": (
        "odesim sweep --system liao --over d=1e3,1e4 --over seed=0..9 --until '2*sqrt(d)'",
        "odesim sweep --system liao --method compressed --over step_size=1e-3,1e-2 --batch 64 --seeds 4",
    ),
    "atlas": (
        "odesim atlas --system saad_solla_1995 -p noise=0",
        "odesim atlas --system arnaboldi_2023 --over step=0..0.3 --map noise=0..1",
    ),
    "figures": ("odesim figures --list", "odesim figures --system liao --only fig2 --quick"),
    "report": ("odesim report runs/verify-liao runs/mine --out reports/liao.html",),
    "explore": (
        "odesim explore runs/liao-0123456789ab",
        "odesim explore runs/flow runs/sgd --out pages/both.html",
        "odesim explore runs/my-sweep --overwrite",
    ),
    "exponents": (
        "odesim exponents --system ben_arous_2021",
        "odesim exponents --system saad_solla_1995 -p teachers=2 --out runs/stairs",
    ),
    "show": ("odesim show runs/liao-0123456789ab", "odesim show runs/mine --json"),
    "plot": ("odesim plot runs/liao-0123456789ab --svg",),
    "doctor": ("odesim doctor", "odesim doctor --json"),
    "warm": ("odesim warm", "odesim warm liao kawata"),
    "cite": ("odesim cite --system liao >> references.bib", "odesim cite runs/check-liao-quick-0123456789ab"),
}  # fmt: skip


def epilog(command: str) -> str:
    r"""Return the text below the options of a command: its examples, line by line, and the exit codes.

    >>> epilog("cite").splitlines()[:2]
    ['\x08', 'Examples:']
    """
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in EXAMPLES[command]), "", CODES])
