#!/bin/sh
# Removes a state folder with all its tables, reports and runs, once somebody has typed that they mean it.
#   scripts/destroy.sh .trendlake
set -eu

state=$1
if [ ! -d "$state" ]; then
    printf 'there is no state folder %s: nothing to remove\n' "$state"
    exit
fi
tables=$(find "$state" -type d -name _delta_log | wc -l)
noun=tables
[ "$tables" != 1 ] || noun=table
size=$(du -sh "$state" | cut -f1)
printf '%s holds %s %s, %s in all. Nothing of it can be brought back.\n' "$state" "$tables" "$noun" "$size"
printf 'Type destroy to remove it: '
read -r answer || answer=
if [ "$answer" != destroy ]; then
    printf '\nnothing was removed\n'
    exit 1
fi
rm -rf "$state"
printf '%s is removed\n' "$state"
