import sys

import pytest

from odesim.__main__ import main


class Interrupted:
    """An importer that is interrupted at the command line's modules."""

    def find_spec(self, name, path=None, target=None):
        if name == "odesim.cli":
            raise KeyboardInterrupt


def test_ctrl_c_while_modules_are_imported_is_a_sentence(monkeypatch, capsys):
    import odesim

    monkeypatch.delitem(sys.modules, "odesim.cli", raising=False)
    monkeypatch.delattr(odesim, "cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 130
    assert capsys.readouterr().err == "odesim: interrupted; no result was written.\n"
