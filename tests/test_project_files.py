"""Files that other programs and maintainers read: workflow, hooks, version, changelog and release steps."""

import re
import tomllib
from pathlib import Path

import yaml

import odesim

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES = 80
"""Largest number of lines of the newest section of the changelog."""


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def workflow():
    return yaml.safe_load(read(".github/workflows/ci.yml"))


def steps():
    return [step for job in workflow()["jobs"].values() for step in job["steps"]]


def targets():
    return set(re.findall(r"^([a-z-]+):", read("Makefile"), flags=re.MULTILINE))


def test_the_workflow_tests_every_python_that_the_package_names():
    classifiers = tomllib.loads(read("pyproject.toml"))["project"]["classifiers"]
    named = [match[1] for line in classifiers if (match := re.search(r":: (3\.\d+)$", line))]
    assert workflow()["jobs"]["test"]["strategy"]["matrix"]["python-version"] == named
    assert len(named) > 2


def test_the_workflow_runs_targets_of_the_makefile():
    matrix = workflow()["jobs"]["dependencies"]["strategy"]["matrix"]["include"]
    called = [step["run"].split()[1] for step in steps() if step.get("run", "").startswith("make ")]
    called += [entry["target"] for entry in matrix]
    assert {"check", "test", "docs", "test-lowest", "test-newest"} <= set(called)
    assert {name for name in called if "$" not in name} <= targets()


def test_the_workflow_runs_all_that_the_local_check_runs():
    local = set(re.findall(r"^make (\S+)", read(".ci/run"), flags=re.MULTILINE))
    hosted = {step["run"].split()[1] for step in steps() if "run" in step}
    assert local <= hosted


def test_the_hooks_are_commands_of_the_development_environment():
    development = " ".join(tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]["dev"])
    packages = {"ruff": "ruff", "lint-imports": "import-linter"}
    (repository,) = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    for hook in repository["hooks"]:
        command = Path(hook["entry"].split()[0])
        assert command.parent == Path(".venv/bin")
        assert packages[command.name] in development


def test_version_citation_and_changelog_agree():
    headings = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", read("CHANGELOG.md"), flags=re.MULTILINE)
    releases = [version for version, _ in headings if version != "Unreleased"]
    assert releases[0] == odesim.__version__
    assert f"\nversion: {odesim.__version__}\n" in read("CITATION.cff")
    assert all(date for version, date in headings if version != "Unreleased")


def test_the_newest_section_of_the_changelog_is_short():
    newest = read("CHANGELOG.md").split("\n## ")[1]
    assert 10 < len(newest.splitlines()) <= MOST_LINES


def test_the_steps_of_a_release_name_files_and_targets_that_exist():
    text = read("RELEASING.md")
    commands = "\n".join(re.findall(r"^ *\$ (.*)", text, flags=re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)", commands)) <= targets()
    for name in re.findall(r"(?:odesim/version\.py|CITATION\.cff|CHANGELOG\.md|\.ci/run)", commands):
        assert (ROOT / name).is_file()
    assert re.search(r'^__version__ = ".*"$', read("odesim/version.py"), flags=re.MULTILINE)
