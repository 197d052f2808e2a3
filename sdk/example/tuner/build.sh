#!/bin/sh
# Without CMake: pkg-config knows the headers, the flags and the version script.
set -eu
cd "$(dirname "$0")"
exec ${CC:-cc} -std=c11 -O2 -o tuner.so tuner.c $(pkg-config --cflags --libs topolet-sdk)
