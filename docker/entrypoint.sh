#!/bin/sh
# Runs the command behind the image's name; without one, says what there is.
set -eu
[ $# -gt 0 ] || exec cat /opt/docker/help.txt
exec "$@"
