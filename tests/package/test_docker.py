"""The image's file names what is there; scripts/check_docker.sh builds it."""

from __future__ import annotations

import re
from pathlib import Path

from caffe.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "docker" / "cpu" / "Dockerfile").read_text()


def test_every_program_has_its_place() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    scripts = re.findall(r'^(\w+) = "caffe\.cli', project, re.M)
    assert len(scripts) > 10
    linked = {
        name
        for names in re.findall(r"for name in ([^;]*);", DOCKERFILE)
        for name in names.replace("\\", " ").split()
    }
    assert linked == set(scripts)
    assert linked - {"caffe"} <= set(COMMANDS)


def test_what_is_copied_is_not_ignored() -> None:
    admitted = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = set()
    for words in re.findall(r"^COPY (?!--)(.*)", DOCKERFILE, re.M):
        for pattern in words.split()[:-1]:
            found = list(ROOT.glob(pattern))
            assert found, pattern
            copied |= {path.relative_to(ROOT).parts[0] for path in found}
    assert copied == admitted
