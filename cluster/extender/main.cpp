// topolet-extender: chooses the NUMA zones of pods for a kube-scheduler that knows nothing of them.
#include <fmt/format.h>
#include <sys/resource.h>

#include <boost/program_options.hpp>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cluster/extender/extender.hpp"
#include "cluster/http/http_server.hpp"
#include "cluster/http/tls_files.hpp"
#include "cluster/program/program.hpp"
#include "core/base/daemon_log.hpp"
#include "core/base/exit_status.hpp"
#include "core/base/host_name.hpp"
#include "core/base/text.hpp"

namespace topolet::extender {
namespace {

namespace po = boost::program_options;

constexpr const char* kNone = "none";
constexpr const char* kInCluster = "in-cluster";
const program::About kAbout = {"topolet-extender",
                               "Chooses the NUMA zones of pods for a kube-scheduler, as its extender: filter, "
                               "prioritize and bind."};
constexpr const char* kPlain = "text/plain; charset=utf-8";
/// A scheduler's requests with 5,000 whole names are a tenth of it.
constexpr std::uint64_t kMaxBodyBytes = 16 << 20;
constexpr std::size_t kMaxConnections = 1000;

struct ProgramOptions {
  std::string kubernetes;
  std::string listen;
  http::TlsFiles::Paths tls;
  std::vector<std::string> client_names;
  std::string metrics_address;
  std::string debug_address;
  std::string lease;
  unsigned lease_duration_s = 6;
  std::string identity;
  std::string advertise;
  std::string zone_policy;
  std::string zone_strategy;
  std::vector<std::string> exclusive_namespaces;
  std::string log_level;
};

std::string environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? std::string() : std::string(value);
}

po::options_description table(ProgramOptions& options) {
  po::options_description table("Options");
  po::options_description_easy_init add = table.add_options();
  const auto text = [](std::string& value, const std::string& otherwise, const char* name) {
    return po::value(&value)->default_value(otherwise)->value_name(name);
  };
  add("kubernetes", text(options.kubernetes, kInCluster, "in-cluster|KUBECONFIG"),
      "as whom to speak to the API server: the service account of this pod, or a kubeconfig");
  add("listen", text(options.listen, "0.0.0.0:9473", "ADDRESS:PORT"),
      "where schedulers and the other replicas call, by HTTPS with a client certificate");
  add("certificate", text(options.tls.certificate, "/etc/topolet/extender/tls.crt", "FILE"),
      "of this server, and of this replica as a client of the leader; PEM; read again when it changes, as are the next "
      "two");
  add("key", text(options.tls.key, "/etc/topolet/extender/tls.key", "FILE"), "its private key");
  add("client-ca", text(options.tls.client_ca, "/etc/topolet/extender/ca.crt", "FILE"),
      "the authority of the schedulers' client certificates and of the replicas' own");
  add("client-name",
      po::value(&options.client_names)
          ->default_value({"system:kube-scheduler"}, "system:kube-scheduler")
          ->value_name("NAME"),
      "the common name of a client certificate that may call; may be given several times. Whoever may call can bind "
      "any "
      "pod to any node");
  add("metrics-address", text(options.metrics_address, "127.0.0.1:9474", "ADDRESS:PORT"),
      "where /metrics, /healthz and /readyz are served; none: nowhere");
  add("debug-address", text(options.debug_address, "127.0.0.1:9475", "ADDRESS:PORT"),
      "where /debug/zones is served; a loopback address, as it names pods; none: nowhere");
  add("lease", text(options.lease, "kube-system/topolet-extender", "NAMESPACE/NAME"),
      "the Lease by which one of several replicas leads; none: this is the only one");
  add("lease-duration", po::value(&options.lease_duration_s)->default_value(6)->value_name("SECONDS"),
      "how long others wait for a leader that is gone, 3 to 600");
  const std::string pod_name = environment("POD_NAME");
  add("identity", text(options.identity, pod_name.empty() ? host_name_in_lower_case() : pod_name, "NAME"),
      "in the Lease; a few random digits are added to it");
  add("advertise", text(options.advertise, "", "ADDRESS:PORT"),
      "where the other replicas reach this one; $POD_IP and the port of --listen, where nothing is given");
  add("zone-policy", text(options.zone_policy, "fewest", "single|fewest|any"),
      "how many zones a container may be on, where its pod has no annotation topolet.io/zone-policy");
  add("zone-strategy", text(options.zone_strategy, "packed", "packed|spread|balanced"),
      "which zones are taken first, where its pod has no annotation topolet.io/zone-strategy");
  add("exclusive-namespace",
      po::value(&options.exclusive_namespaces)->default_value({}, kNone)->value_name("NAMESPACE"),
      "where the annotation topolet.io/cpus: exclusive has requests rounded up on nodes whose agent does not tell "
      "their "
      "placement.exclusive-namespaces; * is any text; may be given several times");
  add("log-level", text(options.log_level, "info", "LEVEL"), "trace, debug, info, warn, error or off");
  add("help", "print this text and exit");
  add("version", "print the version and exit");
  return table;
}

/// Parses --lease; returns nothing for "none".
Result<std::optional<api::LeaderElection::Options>> lease_options(const ProgramOptions& options,
                                                                  unsigned short listen_port) {
  if (options.lease == kNone) return std::optional<api::LeaderElection::Options>();
  const std::size_t slash = options.lease.find('/');
  constexpr const char* kNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  api::LeaderElection::Options lease;
  lease.name_space = options.lease.substr(0, slash);
  lease.name = slash == std::string::npos ? "" : options.lease.substr(slash + 1);
  for (const std::string& name : {lease.name_space, lease.name}) {
    if (name.empty() || name.find_first_not_of(kNameCharacters) != std::string::npos)
      return Error{Code::kInvalidArgument,
                   fmt::format("--lease={}: write NAMESPACE/NAME, or none", printable(options.lease, 300))};
  }
  if (options.lease_duration_s < 3 || options.lease_duration_s > 600)
    return Error{Code::kInvalidArgument,
                 fmt::format("--lease-duration={}: write a number of seconds from 3 to 600", options.lease_duration_s)};
  lease.duration = std::chrono::seconds(options.lease_duration_s);
  lease.renew_deadline = lease.duration * 2 / 3;
  lease.retry_period = lease.duration / 6;
  lease.identity = fmt::format("{}_{:08x}", options.identity, std::random_device{}());
  lease.address = options.advertise;
  if (std::string ip = environment("POD_IP"); lease.address.empty() && !ip.empty()) {
    if (ip.find(':') != std::string::npos) ip = '[' + ip + ']';
    lease.address = fmt::format("{}:{}", ip, listen_port);
  }
  if (lease.address.empty())
    return Error{Code::kInvalidArgument,
                 "the other replicas need an address of this one: give --advertise ADDRESS:PORT or set $POD_IP; or use "
                 "--lease=none for a single replica"};
  return std::optional(lease);
}

std::optional<std::string> mistake_in(const ProgramOptions& options) {
  for (const auto& [name, address] : {std::pair("listen", options.listen),
                                      {"metrics-address", options.metrics_address},
                                      {"debug-address", options.debug_address}}) {
    const bool may_be_none = name != std::string_view("listen");
    if (may_be_none && address == kNone) continue;
    const Result<http::ListenAddress> parsed = http::parse_listen_address(address);
    if (!parsed) return fmt::format("--{}: {}", name, parsed.error().message);
    if (name == std::string_view("debug-address") && !parsed->is_loopback)
      return fmt::format("--debug-address={}: it names pods and nodes to whoever can connect; use a loopback address",
                         address);
  }
  if (!options.advertise.empty()) {
    const Result<http::ListenAddress> parsed = http::parse_listen_address(options.advertise);
    const bool is_reachable = parsed && parsed->port != 0 && parsed->host != "0.0.0.0" && parsed->host != "::";
    if (!is_reachable)
      return fmt::format(
          "--advertise={}: write the IP address and the port at which the other replicas reach this one, "
          "such as 192.0.2.7:9473 or [2001:db8::7]:9473",
          printable(options.advertise, 300));
  }
  for (const std::string& pattern : options.exclusive_namespaces) {
    constexpr const char* kPatternCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-*";
    if (pattern.empty() || pattern.find_first_not_of(kPatternCharacters) != std::string::npos)
      return fmt::format("--exclusive-namespace={}: write the name of a namespace, in which * is any text",
                         printable(pattern, 300));
  }
  const auto& names = options.client_names;
  if (std::find(names.begin(), names.end(), "") != names.end())
    return "--client-name: it is empty, which would be any certificate without a common name; write the name of a "
           "scheduler";
  if (options.kubernetes != kInCluster && !options.kubernetes.starts_with('/'))
    return fmt::format("--kubernetes={}: write in-cluster, or the absolute path of a kubeconfig", options.kubernetes);
  return std::nullopt;
}

Result<ZoneDefaults> zone_defaults(const ProgramOptions& options) {
  const Result<ZonePolicy> policy = parse_zone_policy(options.zone_policy);
  if (!policy) return Error{Code::kInvalidArgument, "--zone-policy: " + policy.error().message};
  const Result<ZoneStrategy> strategy = parse_zone_strategy(options.zone_strategy);
  if (!strategy) return Error{Code::kInvalidArgument, "--zone-strategy: " + strategy.error().message};
  return ZoneDefaults{*policy, *strategy, options.exclusive_namespaces};
}

/// Connections are many where somebody means ill; the limit of descriptors is often low without need.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<std::unique_ptr<http::HttpServer>> serve_get(const std::string& address, http::HttpServer::Handlers handlers) {
  if (address == kNone) return std::unique_ptr<http::HttpServer>();
  http::HttpServer::Options options;
  options.address = address;
  options.max_connections = 256;
  return http::HttpServer::open(std::move(options), std::move(handlers));
}

http::HttpServer::Handlers metrics_routes(const Extender& extender) {
  http::HttpServer::Handlers handlers;
  handlers.answer = [&extender](const http::HttpRequest& request) -> http::HttpResponse {
    if (request.path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", extender.metrics()};
    if (request.path == "/healthz") return {200, kPlain, "alive\n"};
    if (request.path != "/readyz") return {404, kPlain, "there is: /metrics, /healthz, /readyz\n"};
    const std::string missing = extender.not_ready();
    return missing.empty() ? http::HttpResponse{200, kPlain, "ready\n"}
                           : http::HttpResponse{503, kPlain, missing + '\n'};
  };
  return handlers;
}

http::HttpServer::Handlers debug_routes(const Extender& extender) {
  http::HttpServer::Handlers handlers;
  handlers.answer = [&extender](const http::HttpRequest& request) -> http::HttpResponse {
    if (!http::is_loopback_host(request.host))
      return {403, kPlain,
              "this is for this host: ask for it by localhost or 127.0.0.1, through a port-forward for example\n"};
    if (request.path == "/debug/zones") return {200, "application/json", extender.zones_json()};
    return {404, kPlain, "there is: /debug/zones\n"};
  };
  return handlers;
}

/// The three addresses; they end before the extender does.
struct Servers {
  std::unique_ptr<http::HttpServer> calls;
  std::unique_ptr<http::HttpServer> metrics;
  std::unique_ptr<http::HttpServer> debug;
};

Result<Servers> open_servers(const ProgramOptions& options, Extender& extender, http::TlsFiles& tls) {
  Servers servers;
  http::HttpServer::Options calls;
  calls.address = options.listen;
  calls.max_connections = kMaxConnections;
  calls.max_body_bytes = kMaxBodyBytes;
  calls.idle_timeout = std::chrono::seconds(120);
  calls.tls = &tls;
  http::HttpServer::Handlers handlers;
  handlers.refuse_client = [&extender](const std::string& name) { return extender.refusal_of(name); };
  handlers.answer_post = [&extender](http::HttpRequest request, http::HttpServer::Handlers::Respond respond) {
    extender.answer(std::move(request), std::move(respond));
  };
  auto opened = serve_get(options.metrics_address, metrics_routes(extender));
  if (!opened) return opened.error();
  servers.metrics = *std::move(opened);
  opened = serve_get(options.debug_address, debug_routes(extender));
  if (!opened) return opened.error();
  servers.debug = *std::move(opened);
  // Last, as calls begin at once.
  opened = http::HttpServer::open(std::move(calls), std::move(handlers));
  if (!opened) return opened.error();
  servers.calls = *std::move(opened);
  return servers;
}

int run_extender(const ProgramOptions& options, Extender::Options extending) {
  const sigset_t signals = program::block_ending_signals();
  raise_descriptor_limit();
  const auto log = make_daemon_log();
  if (const Status set = set_level(*log, options.log_level); !set)
    return program::usage_error(kAbout, "--log-level: " + set.error().message);
  const auto tls = http::TlsFiles::load(options.tls, *log);
  if (!tls) return program::start_failed(*log, tls.error());
  if (extending.lease && !(*tls)->names().is_for_clients) {
    return program::start_failed(
        *log, {Code::kInvalidArgument,
               fmt::format("{}: it is not for clients, and replicas forward calls to the leader with it: add "
                           "clientAuth to its extended key usage, or use --lease=none for a single replica",
                           options.tls.certificate)});
  }
  const Result<api::ApiServer> server = program::find_api_server(options.kubernetes);
  if (!server) return program::start_failed(*log, server.error());
  Extender extender(std::move(extending), *server, **tls, *log);
  auto servers = open_servers(options, extender, **tls);
  if (!servers) return program::start_failed(*log, servers.error());
  extender.start();
  log->info("schedulers may call https://{}/", servers->calls->address());
  if (servers->metrics) log->info("metrics on http://{}/metrics", servers->metrics->address());
  if (servers->debug) log->info("what is promised: http://{}/debug/zones", servers->debug->address());
  program::wait_for_end(signals, *log);
  extender.stop();
  *servers = {};
  return kExitSuccess;
}

int run(const std::vector<std::string>& arguments) {
  ProgramOptions options;
  if (const auto status = program::read_command_line(kAbout, arguments, table(options))) return *status;
  if (const auto mistake = mistake_in(options)) return program::usage_error(kAbout, *mistake);
  const Result<ZoneDefaults> defaults = zone_defaults(options);
  if (!defaults) return program::usage_error(kAbout, defaults.error().message);
  auto lease = lease_options(options, http::parse_listen_address(options.listen)->port);
  if (!lease) return program::usage_error(kAbout, lease.error().message);
  Extender::Options extending;
  extending.defaults = *defaults;
  extending.lease = *std::move(lease);
  extending.binding.defaults = *defaults;
  extending.client_names = options.client_names;
  return run_extender(options, std::move(extending));
}

}  // namespace
}  // namespace topolet::extender

int main(int argc, char** argv) {
  return topolet::program::run_main(topolet::extender::kAbout, argc, argv, topolet::extender::run);
}
