"""Owner of this process: odesim itself (a command, a worker of a pool), or a user's program with odesim as a library.

This is a separate module, because commands claim their process before NumPy is imported.
"""

_PROCESS = {"own": False}


def claim_process() -> None:
    """Let odesim set environment variables from now on; in a process of the user it sets none."""
    _PROCESS["own"] = True


def owns_process() -> bool:
    """Return True in a process that odesim owns."""
    return _PROCESS["own"]
