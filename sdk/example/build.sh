#!/bin/sh
# From the source tree to both examples in the plugin directory of a prefix. Usage: sdk/example/build.sh PREFIX
set -eu
prefix=$1

# The SDK alone, which needs nothing else of topolet built.
cmake -S sdk -B build/sdk -DCMAKE_INSTALL_PREFIX="$prefix"
cmake --install build/sdk

# A plugin needs the prefix and nothing else.
cmake -S sdk/example/cpp -B build/apart -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
cmake --build build/apart
cmake --install build/apart

cmake -S sdk/example/c -B build/apart-c -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
cmake --build build/apart-c
cmake --install build/apart-c
