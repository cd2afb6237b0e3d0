"""How OpenMP's threads wait for each other: awake for some microseconds, then asleep.

By default GNU's OpenMP keeps waiting threads awake for milliseconds. On a machine that does other
work as well, they burn the very time that the thread they wait for needs, and training slows down
many times over. The setting is read when the OpenMP library is loaded, so this module must be
imported before caffe._core. What the user has set, stays.
"""

from __future__ import annotations

import os

#: Turns of the waiting loop, some 20 to 50 nanoseconds each.
SPIN_COUNT = 2000

if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", str(SPIN_COUNT))
