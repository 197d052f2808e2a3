// Unit tests of a plugin without a daemon: a machine from an hwloc synthetic string, a ledger, requests, a fake host
// that records what the plugin does, and the plugin's answers as plain values. Header only, C++20; needs hwloc (CMake
// target topolet::sdk-testing). Wrong use, and answers that a host would refuse, throw an exception that says why.
#pragma once

#include <topolet/testing/machine.hpp>
#include <topolet/testing/plugin.hpp>
#include <topolet/testing/request.hpp>
