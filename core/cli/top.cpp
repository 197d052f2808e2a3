#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/cli/command.hpp"
#include "core/cli/daemon_client.hpp"
#include "core/cli/measured.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"
#include "core/cli/table.hpp"

namespace topolet::cli {
namespace {

namespace po = boost::program_options;
using control::v1::ContainerLoad;
using control::v1::LoadResponse;

/// Returns a number by which the containers are ordered, the largest first; unknown is last.
std::int64_t rank_of(const ContainerLoad& load, const std::string& by) {
  if (by == "cpu") return load.cpu_milli();
  if (by == "waits") return load.has_psi_some_permille() ? std::int64_t{load.psi_some_permille()} : -1;
  return load.has_memory_bytes() ? load.memory_bytes() : -1;
}

std::vector<const ContainerLoad*> sorted(const LoadResponse& load, const std::string& by) {
  std::vector<const ContainerLoad*> containers;
  for (const ContainerLoad& container : load.containers()) containers.push_back(&container);
  if (by == "name") return containers;
  std::stable_sort(containers.begin(), containers.end(),
                   [&by](const auto* one, const auto* other) { return rank_of(*one, by) > rank_of(*other, by); });
  return containers;
}

Row with(Row row, const Row& more) {
  row.insert(row.end(), more.begin(), more.end());
  return row;
}

std::vector<std::string> with(std::vector<std::string> columns, const std::vector<std::string>& more) {
  columns.insert(columns.end(), more.begin(), more.end());
  return columns;
}

Table table_of_nodes(const LoadResponse& load, bool is_for_people) {
  Table nodes{with({"node", is_for_people ? "CPUs" : "nominal_milli"}, node_load_columns(is_for_people)), {}};
  for (const control::v1::NodeLoad& node : load.nodes()) {
    const Cell nominal = is_for_people ? Cell(node.nominal_milli() / 1000) : Cell(node.nominal_milli());
    nodes.rows.push_back(with({node.node(), nominal}, node_load_cells(&node, is_for_people)));
  }
  return nodes;
}

Table table_of_containers(const LoadResponse& load, const std::string& by, bool is_for_people) {
  const std::vector<std::string> names =
      is_for_people ? std::vector<std::string>{"container", "mode", "CPUs", "requests"}
                    : std::vector<std::string>{"container", "mode", "cpus", "cpu_request_milli", "container_id"};
  Table table{with(names, load_columns(is_for_people)), {}};
  for (const ContainerLoad* container : sorted(load, by)) {
    Row row = {container->container(), container->mode(), container->cpus()};
    row.push_back(is_for_people ? Cell(cpus_text(container->cpu_request_milli()))
                                : Cell(container->cpu_request_milli()));
    if (!is_for_people) row.push_back(container->id());
    table.rows.push_back(with(std::move(row), load_cells(container, is_for_people)));
  }
  return table;
}

std::string text_of(const LoadResponse& load, const std::string& by) {
  return load_notes(load.state()) + table_of_nodes(load, true).format_text() + "\n" +
         table_of_containers(load, by, true).format_text();
}

/// As many lines as the terminal has.
std::string cut_to_terminal(const std::string& text) {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 2) return text;
  std::size_t end = 0;
  for (int line = 1; line < size.ws_row && end != std::string::npos; ++line) {
    end = text.find('\n', end);
    if (end != std::string::npos) ++end;
  }
  return end == std::string::npos ? text : text.substr(0, end);
}

/// Until the program is stopped: on a terminal in the same place, otherwise behind an empty line.
Status refresh_top(DaemonClient& daemon, const std::string& by) {
  constexpr std::chrono::seconds kPause{2};
  constexpr const char* kClear = "\033[H\033[2J";
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  for (bool is_first = true;; is_first = false) {
    const auto load = ask_load(daemon);
    if (!load) return load.error();
    const std::string text = text_of(*load, by);
    Status shown =
        is_terminal ? write_at_once(kClear + cut_to_terminal(text)) : write_at_once((is_first ? "" : "\n") + text);
    if (!shown) return shown;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

void declare_top(Options& options) {
  declare_location(options);
  declare_json(options);
  options.add_options()("once", "Show it once, for scripts.")(
      "sort", po::value<std::string>()->value_name("BY")->default_value("cpu"),
      "The order of the containers: cpu, waits, memory or name.");
}

Status show_top(const Invocation& invocation) {
  const std::string by = invocation.text("sort");
  if (by != "cpu" && by != "waits" && by != "memory" && by != "name")
    return Error{Code::kInvalidArgument, fmt::format("--sort must be cpu, waits, memory or name, not '{}'", by)};
  if (invocation.has("json") && !invocation.has("once"))
    return Error{Code::kInvalidArgument, "--json needs --once: it is for scripts"};
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return daemon.error();
  if (!invocation.has("once")) return refresh_top(*daemon, by);
  const auto load = ask_load(*daemon);
  if (!load) return load.error();
  if (!invocation.has("json")) return write_at_once(text_of(*load, by));
  const control::v1::LoadState& state = load->state();
  return write_at_once(to_text({{"measured_for_ms", state.measured_for_ms()},
                                {"age_ms", state.age_ms()},
                                {"error", state.error()},
                                {"nodes", table_of_nodes(*load, false).format_json()},
                                {"containers", table_of_containers(*load, by, false).format_json()}}));
}

}  // namespace topolet::cli
