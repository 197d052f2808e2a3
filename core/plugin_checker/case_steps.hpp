// Steps that several cases of the check have in common.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/plugin_checker/cases.hpp"
#include "core/plugin_checker/exercise.hpp"
#include "core/plugin_checker/plugin_under_test.hpp"
#include "core/plugin_checker/random_request.hpp"

namespace topolet::plugin_checker {

/// A case that failed says how, and how to see just that again.
struct CaseFailure {
  Mismatch mismatch;
  std::string arguments = {};
};

Outcome outcome_of(CaseFailure failed);

/// The usual requests on this machine, and some random ones.
std::vector<TestRequest> test_requests_on(const Testbed& testbed, std::uint64_t seed);

/// The first line in which two texts differ, of both.
Mismatch first_difference(const std::string& before, const std::string& after, const std::string& where);

/// Loads the plugin, makes one instance and gives it to `body`.
template <class Body>
Outcome with_instance(const CaseInput& input, Body&& body) {
  input.progress("load");
  const auto plugin_under_test = PluginUnderTest::load(input.file);
  if (!plugin_under_test) return Outcome::failed({"a loadable file", plugin_under_test.error().message});
  input.progress("create");
  const auto plugin = plugin_under_test->create();
  if (!plugin) return Outcome::failed({"an instance", plugin.error().message});
  return body(*plugin_under_test, **plugin);
}

}  // namespace topolet::plugin_checker
