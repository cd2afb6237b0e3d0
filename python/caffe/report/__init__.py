"""Measured comparisons of training runs: `run` trains and measures, `compare` and `plot` show."""
