// Prints what Prometheus gets from topolet-agent beside a topoletd that has placed, moved and denied containers, and
// with an API server, and from a topolet-extender that has bound a pod, so that every metric there is has a sample.
// Usage: monitoring_scrape [FOLDER COUNT]   Afterwards, creates containers without pause and writes COUNT further
// scrapes into FOLDER, as 1.prom and so on.
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/cluster_api/apiserver.hpp"
#include "tests/control/daemon_rig.hpp"
#include "tests/http/http_client.hpp"
#include "tests/http/tls_client.hpp"

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

/// Nothing if there is no answer, or another one than metrics.
std::optional<std::string> scrape(const std::string& address) {
  const std::string answer = http_get(address, "/metrics");
  const std::size_t head = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.1 200") || head == std::string::npos) return std::nullopt;
  return answer.substr(head + 4);
}

/// Containers that share, and some that are denied, as fast as one client can.
class Load {
 public:
  explicit Load(DaemonRig& rig) : rig_(rig), thread_([this] { run(); }) {}
  ~Load() {
    is_ending_ = true;
    thread_.join();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  int created() const { return created_; }

 private:
  void run() {
    for (int i = 0; !is_ending_; ++i) {
      if (rig_.create(fmt::format("load-{}", i), i % 8 == 0 ? kMoreCpusThanThereAre : 0).ok()) ++created_;
    }
  }

  DaemonRig& rig_;
  std::atomic<int> created_ = 0;
  std::atomic<bool> is_ending_ = false;
  std::thread thread_;
};

void write_kubeconfig(const std::string& path, const ApiServer& server, const std::string& ca_path) {
  std::ofstream(ca_path) << server.ca_pem();
  const nlohmann::json config = {
      {"current-context", "c"},
      {"contexts", {{{"name", "c"}, {"context", {{"cluster", "k"}, {"user", "u"}}}}}},
      {"clusters", {{{"name", "k"}, {"cluster", {{"server", server.url()}, {"certificate-authority", ca_path}}}}}},
      {"users", {{{"name", "u"}, {"user", {{"token", "secret"}}}}}}};
  std::ofstream(path) << config.dump();
}

/// Scrapes an extender that has bound the pod `waiting`.
std::optional<std::string> scrape_extender(const std::string& kubeconfig) {
  const TempDir folder;
  const Ca ca;
  const Certificate own =
      ca.replica_certificate({.common_name = "topolet-extender", .alternative_names = "IP:127.0.0.1"});
  folder.write("tls.crt", own.certificate_pem);
  folder.write("tls.key", own.key_pem);
  folder.write("ca.crt", ca.pem());
  const Process extender(
      {TOPOLET_EXTENDER, "--kubernetes", kubeconfig, "--lease", "none", "--listen", "127.0.0.1:0", "--metrics-address",
       "127.0.0.1:0", "--debug-address", "none", "--certificate", folder.file("tls.crt"), "--key",
       folder.file("tls.key"), "--client-ca", folder.file("ca.crt")},
      folder.file("log"));
  std::string calls;
  std::optional<std::string> text;
  const auto is_complete = [&] {
    const std::string log = text_of(folder.file("log"));
    std::smatch match;
    const bool serves = std::regex_search(log, match, std::regex("may call https://([0-9.:]+)/"));
    if (!serves || metrics_address(log).empty()) return false;
    post_tls(fmt::format("https://{}/bind", match[1].str()), ca, ca.client_certificate("system:kube-scheduler"),
             R"({"PodName": "waiting", "PodNamespace": "default", "PodUID": "uid-waiting", "Node": "n1"})");
    text = scrape(metrics_address(log));
    return text && text->find(R"(topolet_extender_calls_total{call="bind",outcome="ok"})") != std::string::npos;
  };
  if (DaemonRig::eventually(is_complete)) return text;
  fmt::print(stderr, "{}\n", text_of(folder.file("log")));
  return std::nullopt;
}

int print_scrapes(const std::string& folder, int count) {
  DaemonRig rig;
  ApiServer server({.tokens = {"secret"}});
  server.put("/api/v1/nodes", {{"metadata", {{"name", "n1"}}}});
  // The one that is denied, so that there is an event about it.
  server.put("/api/v1/pods", {{"metadata", {{"namespace", "default"}, {"name", "denied"}, {"uid", "uid-denied"}}},
                              {"spec", {{"nodeName", "n1"}, {"containers", {{{"name", "main"}}}}}},
                              {"status", {{"phase", "Pending"}, {"qosClass", "Guaranteed"}}}});
  server.put("/api/v1/pods", {{"metadata", {{"namespace", "default"}, {"name", "waiting"}, {"uid", "uid-waiting"}}},
                              {"spec", {{"containers", {{{"name", "main"}}}}}},
                              {"status", {{"phase", "Pending"}, {"qosClass", "BestEffort"}}}});
  write_kubeconfig(rig.file("kubeconfig"), server, rig.file("ca.pem"));
  rig.plugin_dir = TOPOLET_BUILT_PLUGINS;
  const std::string watch = "unix://" + rig.file("watch.sock");
  rig.configure("enable = numa", "", "watch = " + watch);
  if (!rig.start()) return fail("topoletd does not start", rig.log());
  Process agent({TOPOLET_AGENT, "--watch", watch, "--metrics-address", "127.0.0.1:0", "--page-address", "none",
                 "--kubernetes", rig.file("kubeconfig"), "--node-name", "n1", "--pod-resources", "none", "--control",
                 "unix://" + rig.control_socket()},
                rig.file("agent.log"));
  std::string address;
  const auto is_ready = [&] {
    address = metrics_address(text_of(rig.file("agent.log")));
    return !address.empty() && http_get(address, "/readyz").starts_with("HTTP/1.1 200") &&
           scrape(address).value_or("").find("\ntopolet_agent_knows_pods 1\n") != std::string::npos;
  };
  if (!DaemonRig::eventually(is_ready)) return fail("the agent is not ready", text_of(rig.file("agent.log")));
  if (!rig.create("shared").ok() || !rig.create("alone", 1).ok() || rig.create("denied", kMoreCpusThanThereAre).ok()) {
    return fail("containers are not placed and denied as they should be", rig.log());
  }
  std::optional<std::string> text;
  // An event on a pod and a write of the NodeResourceTopology come a little later.
  const auto has_all = [&] {
    text = scrape(address);
    return text && text->find("topolet_agent_pod_events_total{reason=") != std::string::npos &&
           text->find("topolet_store_oldest_decision_time_seconds ") != std::string::npos &&
           text->find("topolet_agent_topology_writes_total 0") == std::string::npos;
  };
  if (!DaemonRig::eventually(has_all)) return fail("not all metrics have samples", text.value_or("no answer"));
  const std::optional<std::string> of_extender = scrape_extender(rig.file("kubeconfig"));
  if (!of_extender) return fail("topolet-extender does not tell how it is", "its log is above");
  fmt::print("{}{}", *text, *of_extender);
  if (count == 0) return 0;
  const Load load(rig);
  for (int i = 1; i <= count; ++i) {
    if (!DaemonRig::eventually([&] { return load.created() >= i; })) return fail("no container is created", rig.log());
    text = scrape(address);
    if (!text) return fail("no metrics under load", text_of(rig.file("agent.log")));
    std::ofstream(fmt::format("{}/{}.prom", folder, i)) << *text;
  }
  return 0;
}

}  // namespace
}  // namespace topolet::testing

int main(int argc, char** argv) {
  const bool has_folder = argc == 3;
  return topolet::testing::print_scrapes(has_folder ? argv[1] : "", has_folder ? std::stoi(argv[2]) : 0);
}
