"""Entry point of `odesim` and `python -m odesim`. It handles Ctrl-C until the program itself is imported."""

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command with the arguments of the process, and exit with its code."""
    try:
        from odesim import cli

        try:
            cli.main()
        except SystemExit as end:
            cli.interrupts.leave(end.code)
            raise
    except KeyboardInterrupt:  # during the imports; later each command handles Ctrl-C itself
        print("odesim: interrupted; no result was written.", file=sys.stderr, flush=True)
        os._exit(130)  # as `cli.interrupts.leave`, which may not have been imported


if __name__ == "__main__":
    main()
