// topolet-agent: shows what topoletd decides on this node, and tells others. It decides nothing, and its end costs no
// placement.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cstdlib>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/agent/kubernetes/metrics.hpp"
#include "cluster/agent/kubernetes/reporter.hpp"
#include "cluster/agent/metrics.hpp"
#include "cluster/agent/node.hpp"
#include "cluster/agent/routes.hpp"
#include "cluster/agent/watch_client.hpp"
#include "cluster/http/http_server.hpp"
#include "cluster/program/program.hpp"
#include "core/base/daemon_log.hpp"
#include "core/base/exit_status.hpp"
#include "core/base/host_name.hpp"
#include "core/base/text.hpp"

namespace topolet::agent {
namespace {

namespace po = boost::program_options;

constexpr const char* kNone = "none";
constexpr const char* kInCluster = "in-cluster";
const program::About kAbout = {"topolet-agent",
                               "Shows what topoletd decides on this node: metrics for Prometheus, and a live page."};

struct Options {
  std::string watch;
  std::string metrics_address;
  std::string page_address;
  bool load = false;
  std::string kubernetes;
  std::string control;
  std::string node_name;
  std::string pod_resources;
  unsigned scheduler_resync_s = 5;
  std::vector<std::string> scheduler_names;
  std::string extender_lease;
  std::string log_level;
};

/// A Node is named as its host, but for capital letters.
std::string default_node_name() {
  if (const char* given = std::getenv("NODE_NAME"); given != nullptr && *given != '\0') return given;
  return host_name_in_lower_case();
}

po::options_description table(Options& options) {
  po::options_description table("Options");
  po::options_description_easy_init add = table.add_options();
  add("watch", po::value(&options.watch)->default_value("unix:///run/topolet/watch/watch.sock")->value_name("SOCKET"),
      "topoletd's watch socket, as its option daemon.watch says");
  add("metrics-address",
      po::value(&options.metrics_address)->default_value("127.0.0.1:9470")->value_name("ADDRESS:PORT"),
      "where /metrics, /healthz and /readyz are served; none: nowhere");
  add("page-address", po::value(&options.page_address)->default_value("127.0.0.1:9471")->value_name("ADDRESS:PORT"),
      "where the page is served; a loopback address, as it names all containers of the node; none: nowhere");
  add("load", po::bool_switch(&options.load),
      "show on the page how much of each CPU and node is used, and what can be; topoletd measures it while this agent "
      "runs, unless daemon.load = off");
  add("kubernetes", po::value(&options.kubernetes)->default_value(kNone)->value_name("in-cluster|KUBECONFIG"),
      "publish this node's NodeResourceTopology, and events on its pods: in-cluster with the service account of the "
      "pod "
      "that this runs in, or with a kubeconfig; none: talk to no API server");
  add("node-name",
      po::value(&options.node_name)->default_value(default_node_name(), "$NODE_NAME or the host's")->value_name("NAME"),
      "the name of this node's Node object");
  add("pod-resources",
      po::value(&options.pod_resources)
          ->default_value("unix:///var/lib/kubelet/pod-resources/kubelet.sock")
          ->value_name("SOCKET"),
      "the kubelet's socket that tells which devices there are; none: publish none");
  add("control", po::value(&options.control)->default_value(kNone)->value_name("SOCKET"),
      "topoletd's control socket, to tell it what other programs write about the capacity of this node's zones "
      "(offline-capacity-milli and offline-capacity-until in the NodeResourceTopology); who has this socket can change "
      "topoletd; none: leave that unread");
  add("scheduler-resync", po::value(&options.scheduler_resync_s)->default_value(5)->value_name("SECONDS"),
      "cacheResyncPeriodSeconds of the scheduler's NodeResourceTopologyMatch, 1 to 600");
  add("scheduler-name",
      po::value(&options.scheduler_names)
          ->default_value({"topolet", "topology-aware"}, "topolet topology-aware")
          ->value_name("NAME"),
      "a scheduler that asks for zones, as in schedulerName of its pods: it is made to try them again when a zone of "
      "this node has grown; may be given several times");
  add("extender-lease", po::value(&options.extender_lease)->default_value(kNone)->value_name("NAMESPACE/NAME"),
      "the Lease by which a topolet-extender leads: while it is renewed, the extender alone makes schedulers try pods "
      "again; none: this agent does");
  add("log-level", po::value(&options.log_level)->default_value("info")->value_name("LEVEL"),
      "trace, debug, info, warn, error or off");
  add("help", "print this text and exit");
  add("version", "print the version and exit");
  return table;
}

std::string path_of(const std::string& socket) {
  constexpr std::string_view kScheme = "unix://";
  return socket.starts_with(kScheme) ? socket.substr(kScheme.size()) : socket;
}

/// It becomes part of paths.
bool is_node_name(const std::string& name) {
  return !name.empty() && name.size() <= 253 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos && name.front() != '.';
}

/// Namespace and name; nothing for none.
std::pair<std::string, std::string> lease_of(const std::string& option) {
  const std::size_t slash = option.find('/');
  if (option == kNone || slash == std::string::npos) return {};
  return {option.substr(0, slash), option.substr(slash + 1)};
}

/// Returns the first mistake in the options; nothing if they are valid.
std::optional<std::string> mistake_in(const Options& options) {
  if (!path_of(options.watch).starts_with('/'))
    return fmt::format("--watch={}: write unix:///absolute/path", options.watch);
  if (options.kubernetes != kNone) {
    if (options.kubernetes != kInCluster && !options.kubernetes.starts_with('/'))
      return fmt::format("--kubernetes={}: write none, in-cluster, or the absolute path of a kubeconfig",
                         options.kubernetes);
    if (!is_node_name(options.node_name))
      return fmt::format("--node-name={}: a Node's name has small letters, digits, '-' and '.' only",
                         printable(options.node_name, 300));
  }
  if (options.pod_resources != kNone && !path_of(options.pod_resources).starts_with('/'))
    return fmt::format("--pod-resources={}: write unix:///absolute/path or none", options.pod_resources);
  if (options.control != kNone) {
    if (!path_of(options.control).starts_with('/'))
      return fmt::format("--control={}: write unix:///absolute/path or none", options.control);
    if (options.kubernetes == kNone)
      return fmt::format("--control={}: there is nothing to tell without --kubernetes", options.control);
  }
  for (const std::string& name : options.scheduler_names) {
    if (!is_node_name(name))
      return fmt::format("--scheduler-name={}: a scheduler's name has small letters, digits, '-' and '.' only",
                         printable(name, 300));
  }
  if (options.extender_lease != kNone) {
    const auto [name_space, name] = lease_of(options.extender_lease);
    if (!is_node_name(name_space) || !is_node_name(name))
      return fmt::format("--extender-lease={}: write NAMESPACE/NAME, or none", printable(options.extender_lease, 300));
  }
  if (options.scheduler_resync_s < 1 || options.scheduler_resync_s > 600)
    return fmt::format("--scheduler-resync={}: write a number of seconds from 1 to 600", options.scheduler_resync_s);
  for (const auto& [name, address] :
       {std::pair("metrics-address", options.metrics_address), std::pair("page-address", options.page_address)}) {
    if (address == kNone) continue;
    const Result<http::ListenAddress> parsed = http::parse_listen_address(address);
    if (!parsed) return fmt::format("--{}: {}", name, parsed.error().message);
    if (name == std::string_view("page-address") && !parsed->is_loopback) {
      return fmt::format(
          "--page-address={}: it names all containers of the node to whoever can connect; use a loopback "
          "address, such as 127.0.0.1:{}, and forward the port",
          address, parsed->port);
    }
  }
  return std::nullopt;
}

/// Null if it is to talk to no API server.
Result<std::unique_ptr<Reporter>> make_reporter(const Options& options, Node& node, WatchClient& client, Log& log) {
  if (options.kubernetes == kNone) return std::unique_ptr<Reporter>();
  const Result<api::ApiServer> server = program::find_api_server(options.kubernetes);
  if (!server) return server.error();
  Reporter::Options reporting;
  reporting.node_name = options.node_name;
  reporting.token_file = server->token_file;
  reporting.scheduler_resync = std::chrono::seconds(options.scheduler_resync_s);
  reporting.scheduler_names = options.scheduler_names;
  std::tie(reporting.lease_namespace, reporting.lease_name) = lease_of(options.extender_lease);
  if (options.pod_resources != kNone) reporting.pod_resources = path_of(options.pod_resources);
  if (options.control != kNone) reporting.control_socket = path_of(options.control);
  return std::make_unique<Reporter>(std::move(reporting), *server, node, client, log);
}

Result<std::unique_ptr<http::HttpServer>> serve(const std::string& address, http::HttpServer::Handlers handlers,
                                                std::vector<std::pair<std::string, std::string>> headers) {
  if (address == kNone) return std::unique_ptr<http::HttpServer>();
  http::HttpServer::Options options;
  options.address = address;
  options.headers = std::move(headers);
  return http::HttpServer::open(std::move(options), std::move(handlers));
}

int run_agent(const Options& options) {
  const sigset_t signals = program::block_ending_signals();
  const auto log = make_daemon_log();
  if (const Status set = set_level(*log, options.log_level); !set)
    return program::usage_error(kAbout, "--log-level: " + set.error().message);
  Node node({.version = TOPOLET_VERSION, .name = options.node_name});
  WatchClient client({.socket = path_of(options.watch), .load = options.load}, node, *log);
  const auto reporter = make_reporter(options, node, client, *log);
  if (!reporter) return program::start_failed(*log, reporter.error());
  const auto more_metrics = [&reporter, &options] {
    return node_info_metrics(options.node_name) + (*reporter ? reporter_metrics((*reporter)->counts()) : "");
  };
  auto metrics = serve(options.metrics_address, metrics_routes(node, client, more_metrics), {});
  auto page = metrics ? serve(options.page_address, page_routes(node), page_headers())
                      : Result<std::unique_ptr<http::HttpServer>>(metrics.error());
  if (!page) return program::start_failed(*log, page.error());
  if (*reporter) (*reporter)->start();
  client.start();
  if (*metrics) log->info("metrics on http://{}/metrics", (*metrics)->address());
  if (*page) log->info("the page is on http://{}/", (*page)->address());
  program::wait_for_end(signals, *log);
  if (*reporter) (*reporter)->stop();
  client.stop();
  page->reset();
  metrics->reset();
  return kExitSuccess;
}

int run(const std::vector<std::string>& arguments) {
  Options options;
  if (const auto status = program::read_command_line(kAbout, arguments, table(options))) return *status;
  if (const auto mistake = mistake_in(options)) return program::usage_error(kAbout, *mistake);
  return run_agent(options);
}

}  // namespace
}  // namespace topolet::agent

int main(int argc, char** argv) {
  return topolet::program::run_main(topolet::agent::kAbout, argc, argv, topolet::agent::run);
}
