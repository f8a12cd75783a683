"""Installed packages are read from the metadata, with the same result as by the standard library."""

import importlib.metadata

import pytest

from derivations import installed


@pytest.fixture(autouse=True)
def _forgotten():
    installed.version.cache_clear()
    yield
    installed.version.cache_clear()


def test_versions_are_those_of_the_standard_library():
    names = {dist.metadata["Name"] for dist in importlib.metadata.distributions()}
    assert len(names) > 20
    assert {name: installed.version(name) for name in names} == {
        name: importlib.metadata.version(name) for name in names
    }


def test_what_is_missing_has_none():
    assert installed.version("no-such-package") is None


def test_metadata_under_another_name_is_read_too(tmp_path, monkeypatch):
    """An egg keeps it in PKG-INFO."""
    folder = tmp_path / "oddity.egg-info"
    folder.mkdir()
    (folder / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: oddity\nVersion: 1.2.3\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed.version("oddity") == "1.2.3"
