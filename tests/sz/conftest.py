"""What several tests of the compressor share."""

from __future__ import annotations

import shutil

import pytest
from sz_build import Sanitized, compile_objects


@pytest.fixture(scope="session")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Sanitized:
    """Build sz with ASan and UBSan, once."""
    if not (shutil.which("gcc") and shutil.which("g++")):
        pytest.skip("needs gcc and g++")
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    return Sanitized(flags, compile_objects(tmp_path_factory.mktemp("sanitized"), flags))
