#include "core/plugin_checker/life.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "core/plugin/guard/barrier.hpp"
#include "core/plugin_checker/case_steps.hpp"

namespace topolet::plugin_checker {
namespace {

/// Looks at each step when the next one begins. Only the first finding counts.
class WatchedSteps {
 public:
  WatchedSteps(const Progress& progress, const Look& look) : progress_(progress), look_(look) {}

  void begin(std::string_view step) {
    end(LifeStage::kAlive);
    step_ = step;
    progress_(step);
  }
  void end(LifeStage stage) {
    if (!found_ && !step_.empty()) found_ = look_(stage, step_);
    step_.clear();
  }
  Progress progress() {
    return [this](std::string_view step) { begin(step); };
  }
  const MaybeMismatch& found() const { return found_; }

 private:
  const Progress& progress_;
  const Look& look_;
  std::string step_;
  MaybeMismatch found_;
};

}  // namespace

bool open_file(const CaseInput& input) {
  const std::string file = std::filesystem::absolute(input.file);
  void* library = nullptr;
  const auto thrown = plugin::thrown_by([&] { library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); });
  return !thrown && library != nullptr;
}

Outcome live(const CaseInput& input, const Look& look) {
  WatchedSteps steps(input.progress, look);
  const auto judged = [&steps](std::string note) {
    return steps.found() ? Outcome::failed(*steps.found()) : Outcome::passed(std::move(note));
  };
  steps.begin("load");
  static_cast<void>(open_file(input));
  steps.end(LifeStage::kAlive);
  const auto plugin_under_test = PluginUnderTest::load(input.file);
  if (!plugin_under_test) return Outcome::failed({"a loadable file", plugin_under_test.error().message});
  steps.begin("create");
  auto plugin = plugin_under_test->create();
  steps.end(LifeStage::kAlive);
  if (!plugin) return Outcome::failed({"an instance", plugin.error().message});
  std::uint32_t calls = 0;
  for (const Testbed& testbed : make_testbeds()) {
    if (steps.found()) return judged({});
    const TestRequest test_request = test_requests_on(testbed, input.seed).front();
    calls += exercise_decision(**plugin, test_request, steps.progress()).calls;
    calls += exercise_events(**plugin, test_request, steps.progress()).calls;
  }
  steps.begin("destroy");
  plugin->reset();
  steps.end(LifeStage::kDestroyed);
  return judged(fmt::format("{} calls", calls));
}

}  // namespace topolet::plugin_checker
