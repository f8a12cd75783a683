"""BibTeX of what a run rests on."""

from derivations.contract import Source, System
from odesim.version import __version__


def bibtex(system: System) -> list[str]:
    """The BibTeX entries of the paper of `system` and of odesim itself."""
    own = (
        "@software{odesim,\n"
        "  title   = {odesim: derivation, microscope and claim for the learning dynamics "
        "of mixtures of experts},\n"
        "  author  = {{The odesim authors}},\n"
        f"  version = {{{__version__}}},\n"
        "}"
    )
    return [system.source.bibtex.strip() or _entry(system.name, system.source), own]


def _entry(name: str, source: Source) -> str:
    """An entry made of the fields of a source that brings no BibTeX of its own."""
    return (
        f"@misc{{{name}{source.year},\n  title  = {{{source.title}}},\n  author = {{{source.authors}}},\n"
        f"  note   = {{{source.venue}}},\n  year   = {{{source.year}}},\n}}"
    )
