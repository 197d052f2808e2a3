#include "core/plugin_checker/case_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace topolet::plugin_checker {
namespace {

constexpr int kRandomPerMachine = 6;

}  // namespace

Outcome outcome_of(CaseFailure failed) {
  Outcome outcome = Outcome::failed(std::move(failed.mismatch));
  outcome.arguments = std::move(failed.arguments);
  return outcome;
}

std::vector<TestRequest> test_requests_on(const Testbed& testbed, std::uint64_t seed) {
  const auto view = std::make_shared<const plugin::AbiTopology>(testbed.machine.topology);
  std::vector<TestRequest> test_requests;
  const auto add = [&](placement::PolicyRequest request) {
    std::string name = fmt::format("request {} on machine {}", test_requests.size() + 1, testbed.machine.name);
    test_requests.push_back({std::move(name), view, std::move(request)});
  };
  for (placement::PolicyRequest& request : usual_requests(testbed)) add(std::move(request));
  RandomSource rng(seed);
  for (int i = 0; i < kRandomPerMachine; ++i) add(random_request(testbed, rng));
  return test_requests;
}

Mismatch first_difference(const std::string& before, const std::string& after, const std::string& where) {
  auto [at, other] = std::mismatch(before.begin(), before.end(), after.begin(), after.end());
  const auto line_at = [](const std::string& text, std::ptrdiff_t position) {
    const auto offset = static_cast<std::size_t>(position);
    const std::size_t begin = offset == 0 ? 0 : text.rfind('\n', offset - 1) + 1;
    const std::string line = text.substr(begin, std::min<std::size_t>(text.find('\n', offset) - begin, 200));
    return line.empty() ? std::string("nothing") : line;
  };
  return {fmt::format("the same answer as before, '{}'", line_at(before, at - before.begin())),
          fmt::format("'{}' {}", line_at(after, other - after.begin()), where)};
}

}  // namespace topolet::plugin_checker
