"""Makes the helpers beside the tests importable from every folder of tests."""

import sys
from pathlib import Path

for folder in ("golden", "layers", "net", "prepare"):
    sys.path.insert(0, str(Path(__file__).parent / folder))
