#!/bin/sh
# Usage: build.sh DIRECTORY: makes stay.so there. Without Cargo, as it needs no crate.
set -eu
cd "$(dirname "$0")"
exec ${RUSTC:-rustc} --edition 2021 --crate-type cdylib -O -C panic=unwind -o "$1/stay.so" stay.rs
