#!/bin/sh
# The man page, from what the program says of itself: `tools/man.sh path/to/dcrl > dcrl.1`. Lines are kept as they are.
set -eu
dcrl=$1
plain() { sed -e 's/\\/\\\\/g' -e "s/^\([.']\)/\\\\\&\1/" -e 's/-/\\-/g'; }
section() { # TITLE COMMAND...
    printf '.SH %s\n.nf\n' "$1"
    shift
    "$@" | plain
    echo .fi
}
echo ".TH DCRL 1"
printf '.SH NAME\ndcrl \\- offline goal\\-conditioned reinforcement learning over long horizons\n'
section SYNOPSIS "$dcrl" --help
for command in $("$dcrl" complete '' | cut -f 1); do
    section "$(echo "$command" | tr a-z A-Z)" "$dcrl" help "$command"
done
