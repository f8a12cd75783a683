"""The public programs that odesim is timed against: installed here, and a reason where one is missing."""

import importlib.util
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = {
    "torch": "torch==2.13.0",  # by exact version and first, so that the build without CUDA is taken
    "torchdiffeq": "torchdiffeq==0.2.5",
    "heyoka": "heyoka==7.13.2",
    "jitcode": "jitcode==1.7.3",
    "symengine": "symengine==0.15.0",
    "thewalrus": "thewalrus==0.22.0",
    "chaospy": "chaospy==4.3.21",
}
CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"


def install() -> dict[str, str]:
    """Install the peers that are missing, one by one; returns the reason for each that could not be had."""
    missing = {}
    for name, requirement in REQUIREMENTS.items():
        if importlib.util.find_spec(name) is not None:
            continue
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if CONSTRAINTS.exists():
            command += ["-c", str(CONSTRAINTS)]
        try:
            done = subprocess.run([*command, requirement], capture_output=True, text=True, timeout=900)
        except (OSError, subprocess.SubprocessError) as error:
            missing[name] = f"pip could not run: {type(error).__name__}"
            continue
        if done.returncode != 0:
            missing[name] = f"pip install {requirement} failed"
        importlib.invalidate_caches()
    return missing


def reason(error: BaseException) -> str:
    """The reason why a peer has no number, as the note of a row."""
    text = str(error).strip().splitlines()
    return f"peer not measured: {type(error).__name__}" + (f" ({text[0][:100]})" if text else "")
