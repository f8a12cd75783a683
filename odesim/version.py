"""Version of odesim, in a module that every package can import."""

__version__ = "0.3.0"
PURPOSE = (
    "odesim turns a teacher-student model into the exact ODEs of its SGD dynamics, solves them at any dimension, and "
    "tests theorems against them and against simulated SGD."
)
"""Description of odesim in one sentence, used by README, documentation, package and command."""
