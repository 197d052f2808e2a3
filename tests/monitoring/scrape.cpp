// Prints what Prometheus gets from topolet-agent beside a topoletd that has placed, moved and denied containers, so
// that every metric there is has a sample.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/agent/http_client.hpp"
#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

constexpr int kMoreCpusThanThereAre = 100000;

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Where the agent says that it serves metrics; empty until it does.
std::string metrics_address(const std::string& log) {
  std::smatch match;
  return std::regex_search(log, match, std::regex("metrics on http://([0-9.:]+)/")) ? match[1].str() : "";
}

int fail(const std::string& what, const std::string& log) {
  fmt::print(stderr, "{}\n{}\n", what, log);
  return 1;
}

int print_scrape() {
  DaemonRig rig;
  rig.plugin_dir = TOPOLET_BUILT_PLUGINS;
  const std::string watch = "unix://" + rig.file("watch.sock");
  rig.configure("enable = numa", "", "watch = " + watch);
  if (!rig.start()) return fail("topoletd does not start", rig.log());
  Process agent({TOPOLET_AGENT, "--watch", watch, "--metrics-address", "127.0.0.1:0", "--page-address", "none"},
                rig.file("agent.log"));
  std::string address;
  const auto is_ready = [&] {
    address = metrics_address(text_of(rig.file("agent.log")));
    return !address.empty() && http_get(address, "/readyz").starts_with("HTTP/1.1 200");
  };
  if (!DaemonRig::eventually(is_ready)) return fail("the agent is not ready", text_of(rig.file("agent.log")));
  if (!rig.create("shared").ok() || !rig.create("alone", 1).ok() || rig.create("denied", kMoreCpusThanThereAre).ok()) {
    return fail("containers are not placed and denied as they should be", rig.log());
  }
  const std::string answer = http_get(address, "/metrics");
  const std::size_t head = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.1 200") || head == std::string::npos) return fail("no metrics", answer);
  fmt::print("{}", answer.substr(head + 4));
  return 0;
}

}  // namespace
}  // namespace topolet::testing

int main() { return topolet::testing::print_scrape(); }
