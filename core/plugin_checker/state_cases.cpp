// The cases about what an instance leaves to the next one.
#include <fmt/format.h>
#include <malloc.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"
#include "core/plugin_checker/case_steps.hpp"
#include "core/plugin_checker/cases.hpp"

namespace topolet::plugin_checker {
namespace {

/// The value of bytes that were freed.
constexpr int kFreedByte = 0x5a;
constexpr int kReloads = 3;

/// The decisions on the first request of each machine, as one text.
std::string decide_everywhere(plugin::PluginPolicy& plugin, const CaseInput& input) {
  std::string answers;
  for (const Testbed& testbed : make_testbeds()) {
    answers += exercise_decision(plugin, test_requests_on(testbed, input.seed).front(), input.progress).answers;
  }
  return answers;
}

/// As at reloads: the new instance is created before the old one is destroyed, and finds its state.
Outcome survives_reloads(const CaseInput& input) {
  ::mallopt(M_PERTURB, kFreedByte);
  input.progress("load");
  const auto plugin_under_test = PluginUnderTest::load(input.file);
  if (!plugin_under_test) return Outcome::failed({"a loadable file", plugin_under_test.error().message});
  const auto state = std::make_shared<plugin::InMemoryPluginState>();
  const auto create = [&] {
    input.progress("create");
    return plugin_under_test->create_with(make_silent_log(), state);
  };
  auto plugin = create();
  if (!plugin) return Outcome::failed({"an instance", plugin.error().message});
  const std::string before = decide_everywhere(**plugin, input);
  for (int i = 0; i < kReloads; ++i) {
    auto next = create();
    if (!next) return Outcome::failed({"a second instance beside the first", next.error().message});
    input.progress("destroy");
    plugin = *std::move(next);
    const std::string after = decide_everywhere(**plugin, input);
    if (after != before) {
      return Outcome::failed(first_difference(before, after, "from a new instance, after the old one was destroyed"));
    }
  }
  return Outcome::passed(fmt::format("{} reloads", kReloads));
}

/// Values that no instance has saved: of another version, or damaged.
std::vector<std::string> odd_values(const std::string& saved) {
  std::string damaged = saved;
  for (char& byte : damaged) byte = static_cast<char>(byte ^ 0x5a);
  return {"", saved.substr(0, saved.size() / 2), saved + saved, damaged, std::string(65536, '9')};
}

std::vector<std::string> keys_in(store::PluginStateStore& state, const std::string& plugin) {
  std::vector<std::string> keys;
  std::string last;
  while (true) {
    const auto next = state.next(plugin, last);
    if (!next || !next->has_value()) return keys;
    last = **next;
    keys.push_back(last);
  }
}

/// Damages each value that it saves, and adds one that it does not know. It may refuse to be created, with a reason.
Outcome survives_odd_state(const CaseInput& input) {
  return with_instance(input, [&](const PluginUnderTest& plugin_under_test, plugin::PluginPolicy&) {
    const auto state = std::make_shared<plugin::InMemoryPluginState>();
    const auto first = plugin_under_test.create_with(make_silent_log(), state);
    if (!first) return Outcome::failed({"an instance", first.error().message});
    const std::vector<Testbed> testbeds = make_testbeds();
    const TestRequest test_request = test_requests_on(testbeds.front(), input.seed).front();
    (void)exercise_events(**first, test_request, input.progress);
    const std::string name = (*first)->name();
    std::vector<std::string> keys = keys_in(*state, name);
    keys.emplace_back("of-a-later-version");
    int tried = 0;
    for (const std::string& key : keys) {
      const auto found = state->get(name, key);
      const std::string saved = found && found->has_value() ? **found : "1";
      for (const std::string& value : odd_values(saved)) {
        static_cast<void>(state->set(name, key, value));
        const std::string where = fmt::format("with {} bytes in its state for '{}'", value.size(), printable(key, 64));
        input.progress("create " + where);
        const auto created = plugin_under_test.create_with(make_silent_log(), state);
        if (!created && created.error().message.find("create threw") != std::string::npos) {
          return Outcome::failed({"an instance, or a refusal with a reason", created.error().message + ", " + where});
        }
        if (created) (void)exercise_decision(**created, test_request, input.progress);
        ++tried;
      }
      static_cast<void>(state->set(name, key, saved));
    }
    return Outcome::passed(fmt::format("{} values", tried));
  });
}

}  // namespace

std::vector<Case> state_cases() {
  constexpr auto kNeeds = Case::Needs::kCreated;
  return {
      {"reload", "a new instance, created before the old one is destroyed, answers the same", kNeeds, survives_reloads},
      {"odd-state", "it is created, or refuses with a reason, whatever it finds in its state", kNeeds,
       survives_odd_state},
  };
}

}  // namespace topolet::plugin_checker
