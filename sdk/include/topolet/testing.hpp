// Unit tests of a plugin without a daemon: a machine from an hwloc synthetic string, a ledger, requests, a fake host
// that records what the plugin does, and the plugin's answers as plain values. What a plugin is shown has the form that
// topolet gives it: entries of the ledger in its order, pairs by their keys, values of options in their plain form.
// Header only, C++20; needs hwloc (CMake target topolet::sdk-testing). Wrong use, and answers that a host would refuse,
// throw an exception that says why.
#pragma once

#include <topolet/testing/machine.hpp>
#include <topolet/testing/plugin.hpp>
#include <topolet/testing/request.hpp>
