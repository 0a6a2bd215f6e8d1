#!/bin/sh
# agent.sh HOST COMMAND...: runs a command on one of the hosts of cluster.sh, as rsh does.
host=$1; shift
exec nsenter --target "$(cat "/run/$host")" --all sh -c "$*"
