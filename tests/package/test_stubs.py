"""The type stubs in caffe/_core name exactly what the extension has."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import caffe

STUBS = Path(caffe.__file__).with_name("_core")
MODULES = sorted(path.stem for path in STUBS.glob("*.pyi"))


def names_of(body: list[ast.stmt]) -> set[str]:
    names = set()
    for statement in body:
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            names.add(statement.name)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.add(statement.target.id)
        elif isinstance(statement, ast.ImportFrom) and statement.level:
            names.update(alias.name for alias in statement.names)
    return {name for name in names if not name.startswith("_")}


def public(what: object) -> set[str]:
    names = {name for name in vars(what) if not name.startswith("_")}
    return names - {"name", "value"} if hasattr(what, "__members__") else names


@pytest.mark.parametrize("name", MODULES)
def test_names(name: str) -> None:
    module = importlib.import_module("caffe._core" if name == "__init__" else f"caffe._core.{name}")
    tree = ast.parse((STUBS / f"{name}.pyi").read_text(encoding="utf-8"))
    assert names_of(tree.body) == public(module)
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and hasattr(module, statement.name):
            cls = getattr(module, statement.name)
            assert names_of(statement.body) == public(cls), statement.name


def test_the_stubs_do_not_hide_the_extension() -> None:
    assert importlib.import_module("caffe._core").__file__.endswith(".so")
