"""docs/layers.md is what its script makes of the present layers, and has all of them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import caffe

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "layer_docs.py"))
PAGE = (ROOT / "docs" / "layers.md").read_text(encoding="utf-8")


def test_the_page_is_what_the_script_makes() -> None:
    assert SCRIPT["page"]() == PAGE, "run: python scripts/layer_docs.py"


def test_every_type_has_a_section_with_a_text() -> None:
    sections = dict(re.findall(r"^## (\w+)\n\n(.*?)(?=\n## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
    assert sorted(sections) == caffe.layer_type_list()
    for kind, text in sections.items():
        words = " ".join(line for line in text.splitlines() if not line.startswith("|"))
        assert len(words) > 40, kind


def test_every_differentiable_type_says_what_backward_reads() -> None:
    sources = {"Data", "DummyData", "Input", "MemoryData", "Accuracy", "Python"}
    for kind in set(caffe.layer_type_list()) - sources:
        section = PAGE.split(f"\n## {kind}\n")[1].split("\n## ")[0]
        assert "Backward reads" in section, kind


def test_a_type_without_an_entry_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(SCRIPT["LAYERS"], "ReLU")
    with pytest.raises(ValueError, match="differ in: ReLU"):
        SCRIPT["page"]()
