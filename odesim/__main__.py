"""The command `odesim`, also as `python -m odesim`: what Ctrl-C meets before the program itself can answer it."""

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command with the words of the process, and exit with its code."""
    try:
        from odesim import cli

        try:
            cli.main()
        except SystemExit as end:
            cli.interrupts.leave(end.code)
            raise
    except KeyboardInterrupt:  # while modules were imported; every command answers its own
        print("odesim: interrupted; no result was written.", file=sys.stderr, flush=True)
        os._exit(130)  # as `cli.interrupts.leave`, which may not have been imported


if __name__ == "__main__":
    main()
