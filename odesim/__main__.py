"""The command `odesim`, also as `python -m odesim`: what Ctrl-C meets before the program itself can answer it."""

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
        print("odesim: interrupted; no result was written.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
