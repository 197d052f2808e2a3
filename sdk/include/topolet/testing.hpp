// Unit tests of a plugin without a daemon: a machine from an hwloc synthetic string, a ledger, requests, a host that
// keeps what it is told, and the plugin's answers as plain values. Header only, C++20; needs hwloc (CMake target
// topolet::sdk-testing). What makes no sense throws, in words.
#pragma once

#include <topolet/testing/machine.hpp>
#include <topolet/testing/plugin.hpp>
#include <topolet/testing/request.hpp>
