"""`python -m caffe`: the same as the command `caffe`."""

import sys

from caffe.cli.main import main

sys.exit(main())
