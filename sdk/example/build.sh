#!/bin/sh
# From the source tree to the examples in the plugin directory of a prefix. Usage: sdk/example/build.sh PREFIX
set -eu
prefix=$1

# The SDK alone, which needs nothing else of topolet built.
cmake -S sdk -B build/sdk -DCMAKE_INSTALL_PREFIX="$prefix"
cmake --install build/sdk

# A plugin needs the prefix and nothing else.
cmake -S sdk/example/spread -B build/spread -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
cmake --build build/spread
cmake --install build/spread

for example in avoid pools tuner background; do
  cmake -S sdk/example/$example -B build/$example -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
  cmake --build build/$example
  cmake --install build/$example
done
