"""The version of odesim, where everything below the package can ask for it."""

__version__ = "0.2.0"
PURPOSE = (
    "odesim turns a teacher-student model into the exact ODEs of its SGD dynamics, solves them at any dimension, and "
    "tests theorems against them and against simulated SGD."
)
"""Description of odesim in one sentence, used by README, documentation, package and command."""
