"""`python -m odesim` is the command `odesim`."""

from odesim.cli import main

if __name__ == "__main__":
    main()
