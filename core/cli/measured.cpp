#include "core/cli/measured.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/load/load.hpp"

namespace topolet::cli {
namespace {

constexpr std::chrono::milliseconds kBetweenQuestions{500};
constexpr int kMostQuestions = 10;

/// Two rounds of measurements at least, so that something is known of what lies between them.
bool has_values(const control::v1::LoadResponse& load) {
  if (!load.state().is_measuring() || load.state().measured_for_ms() == 0) return false;
  return load.containers_size() > 0 || load.state().measured_for_ms() >= 2000;
}

Cell percent_cell(bool is_known, std::uint32_t permille) {
  return is_known ? Cell(fmt::format("{} %", (permille + 5) / 10)) : Cell("");
}

Row cells_for_people(const control::v1::ContainerLoad& load) {
  const std::string waits = load.has_psi_some_permille() ? fmt::format("{} %{}", (load.psi_some_permille() + 5) / 10,
                                                                       load.is_throttled() ? " (own quota)" : "")
                                                         : std::string();
  return {cpus_text(load.cpu_milli()),
          waits,
          load.has_memory_bytes() ? Cell(fmt::format("{} MiB", load.memory_bytes() >> 20)) : Cell(""),
          percent_cell(load.has_memory_psi_permille(), load.memory_psi_permille()),
          percent_cell(load.has_io_psi_permille(), load.io_psi_permille()),
          load.has_memory_high_per_minute() ? Cell(fmt::format("{}/min", load.memory_high_per_minute())) : Cell("")};
}

template <class Number>
Cell known(bool is_known, Number value) {
  return is_known ? Cell(value) : Cell();
}

}  // namespace

std::string cpus_text(std::int64_t milli) { return fmt::format("{:.2f}", static_cast<double>(milli) / 1000); }

Result<control::v1::LoadResponse> ask_load(DaemonClient& daemon) {
  for (int asked = 1;; ++asked) {
    auto load = daemon.call(&control::v1::Control::Stub::Load, control::v1::LoadRequest());
    if (!load) return load.error();
    if (load->state().sampling() == "off") {
      return Error{Code::kFailedPrecondition,
                   "topoletd measures no load: daemon.load = off; set it to auto or on, and restart topoletd"};
    }
    if (has_values(*load) || asked == kMostQuestions) return load;
    std::this_thread::sleep_for(kBetweenQuestions);
  }
}

std::string load_notes(const control::v1::LoadState& state) {
  constexpr std::int64_t kSettledMs = std::chrono::milliseconds(load::kSettled).count();
  constexpr std::int64_t kLongestAgeMs = std::chrono::milliseconds(load::kLongestAge).count();
  std::string notes;
  if (!state.is_measuring()) notes += "nothing has been measured yet; try again\n";
  if (!state.error().empty()) notes += fmt::format("CPUs are not measured: {}\n", state.error());
  if (state.is_measuring() && state.measured_for_ms() < kSettledMs)
    notes += fmt::format("measured for {} s: nobody decides by less than {} s\n", state.measured_for_ms() / 1000,
                         load::kSettled.count());
  if (state.age_ms() > kLongestAgeMs)
    notes += fmt::format("the newest values are {} s old: nobody decides by them\n", state.age_ms() / 1000);
  return notes;
}

std::vector<std::string> load_columns(bool is_for_people) {
  if (is_for_people) return {"CPUs used", "waits", "memory", "waits for memory", "waits for disks", "memory.high"};
  return {"used_cpu_milli",      "psi_some_permille", "is_throttled",           "used_memory_bytes",
          "memory_psi_permille", "io_psi_permille",   "memory_high_per_minute", "age_ms"};
}

Row load_cells(const control::v1::ContainerLoad* measured, bool is_for_people) {
  if (measured == nullptr) return Row(load_columns(is_for_people).size(), is_for_people ? Cell("") : Cell());
  const control::v1::ContainerLoad& load = *measured;
  if (is_for_people) return cells_for_people(load);
  return {load.cpu_milli(),
          known(load.has_psi_some_permille(), load.psi_some_permille()),
          load.is_throttled(),
          known(load.has_memory_bytes(), load.memory_bytes()),
          known(load.has_memory_psi_permille(), load.memory_psi_permille()),
          known(load.has_io_psi_permille(), load.io_psi_permille()),
          known(load.has_memory_high_per_minute(), load.memory_high_per_minute()),
          load.age_ms()};
}

std::map<std::string, const control::v1::ContainerLoad*> by_id(const control::v1::LoadResponse& load) {
  std::map<std::string, const control::v1::ContainerLoad*> all;
  for (const control::v1::ContainerLoad& container : load.containers()) all[container.id()] = &container;
  return all;
}

std::vector<std::string> node_load_columns(bool is_for_people) {
  if (is_for_people) return {"CPUs used", "CPUs effective", "effective by"};
  return {"used_milli", "effective_milli", "effective_source"};
}

Row node_load_cells(const control::v1::NodeLoad* measured, bool is_for_people) {
  if (measured == nullptr) return Row(node_load_columns(is_for_people).size(), is_for_people ? Cell("") : Cell());
  const control::v1::NodeLoad& load = *measured;
  const auto cell = [is_for_people](bool is_known, std::int64_t milli) {
    if (!is_known) return is_for_people ? Cell("") : Cell();
    return is_for_people ? Cell(cpus_text(milli)) : Cell(milli);
  };
  return {cell(load.has_used_milli(), load.used_milli()), cell(load.has_effective_milli(), load.effective_milli()),
          load.source()};
}

}  // namespace topolet::cli
