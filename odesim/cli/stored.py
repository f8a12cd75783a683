"""The commands that look at stored runs: `odesim show` and `odesim plot`."""

from pathlib import Path

from odesim.cli.options import AsJson, Debug, Quiet, RunFolder


def show(folder: RunFolder, json: AsJson = False, quiet: Quiet = False, debug: Debug = False) -> int:
    """Show a stored run: what was asked, how it ended, its headline numbers."""
    from odesim.cli.output import print_json, print_pairs
    from odesim.store.read import read_headline

    manifest, summary = read_headline(Path(folder))
    outcome = manifest["outcome"]
    if json:
        print_json({"folder": folder, "outcome": outcome, "summary": summary, "manifest": manifest})
        return 0
    print(f"{folder}: {outcome['kind']} at time {outcome['time']:.6g}")
    if outcome["reason"]:
        print(f"  {outcome['reason']}")
    blocks = {
        "summary": summary,
        "request": manifest["request"],
        "invariants": manifest["invariants"],
        "statistics": manifest["statistics"],
        "wall times (s)": manifest["wall_times"],
        "made": {
            "at": manifest["created"],
            "odesim": manifest["versions"]["odesim"],
            "commit": (manifest["git"] or {}).get("commit"),
            "device": manifest["device"]["used"],
            "precision": manifest["precision"],
            "files": ", ".join(manifest["files"]),
        },
    }
    for title in ["summary"] if quiet else blocks:
        print(title)
        print_pairs(blocks[title])
    return 0


def plot(folder: RunFolder, json: AsJson = False, quiet: Quiet = False, debug: Debug = False) -> int:
    """Draw the pictures of a stored run again, without running it."""
    from odesim import store
    from odesim.cli.output import print_json

    pictures = store.redraw(store.load(folder))
    if json:
        print_json({"folder": folder, "pictures": [str(path) for path in pictures]})
    elif not quiet:
        for path in pictures:
            print(path)
    return 0
