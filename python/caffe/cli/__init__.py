"""The command `caffe`: one module a subcommand, `main` chooses."""
