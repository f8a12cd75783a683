"""The version of odesim, where everything below the package can ask for it."""

__version__ = "0.2.0"
