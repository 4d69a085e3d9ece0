"""The examples of the README, on the ensemble of small.toml: what they print is what is printed there."""

import doctest
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_readme_prints_what_it_says(workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    failed, tried = doctest.testfile(str(README), module_relative=False)
    assert failed == 0 and tried > 15
