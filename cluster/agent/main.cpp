// topolet-agent: shows what topoletd decides on this node, and tells others. It decides nothing, and its end costs no
// placement.
#include <fmt/format.h>
#include <signal.h>

#include <boost/program_options.hpp>
#include <csignal>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "cluster/agent/http_server.hpp"
#include "cluster/agent/node.hpp"
#include "cluster/agent/routes.hpp"
#include "cluster/agent/watch_client.hpp"
#include "core/base/daemon_log.hpp"
#include "core/base/escape.hpp"
#include "core/base/exit_status.hpp"
#include "core/base/standard_streams.hpp"

namespace topolet::agent {
namespace {

namespace po = boost::program_options;

constexpr const char* kNone = "none";

struct Options {
  std::string watch;
  std::string metrics_address;
  std::string page_address;
  std::string log_level;
};

po::options_description table(Options& options) {
  po::options_description table("Options");
  po::options_description_easy_init add = table.add_options();
  add("watch", po::value(&options.watch)->default_value("unix:///run/topolet/watch.sock")->value_name("SOCKET"),
      "topoletd's watch socket, as its option daemon.watch says");
  add("metrics-address",
      po::value(&options.metrics_address)->default_value("127.0.0.1:9470")->value_name("ADDRESS:PORT"),
      "where /metrics, /healthz and /readyz are served; none: nowhere");
  add("page-address", po::value(&options.page_address)->default_value("127.0.0.1:9471")->value_name("ADDRESS:PORT"),
      "where the page is served; a loopback address, as it names all containers of the node; none: nowhere");
  add("log-level", po::value(&options.log_level)->default_value("info")->value_name("LEVEL"),
      "trace, debug, info, warn, error or off");
  add("help", "print this text and exit");
  add("version", "print the version and exit");
  return table;
}

int usage_error(const std::string& what) {
  print_error_line("topolet-agent: " + what + "; topolet-agent --help lists the options");
  return kExitUsage;
}

/// Blocked before any thread begins, so that all of them leave the signals to the main one.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

std::string path_of(const std::string& socket) {
  constexpr std::string_view kScheme = "unix://";
  return socket.starts_with(kScheme) ? socket.substr(kScheme.size()) : socket;
}

/// What is wrong with the options; nothing if they are right.
std::optional<std::string> mistake_in(const Options& options) {
  if (!path_of(options.watch).starts_with('/'))
    return fmt::format("--watch={}: write unix:///absolute/path", options.watch);
  for (const auto& [name, address] :
       {std::pair("metrics-address", options.metrics_address), std::pair("page-address", options.page_address)}) {
    if (address == kNone) continue;
    const Result<ListenAddress> parsed = parse_listen_address(address);
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

Result<std::unique_ptr<HttpServer>> serve(const std::string& address, HttpServer::Handlers handlers,
                                          std::vector<std::pair<std::string, std::string>> headers) {
  if (address == kNone) return std::unique_ptr<HttpServer>();
  HttpServer::Options options;
  options.address = address;
  options.headers = std::move(headers);
  return HttpServer::open(std::move(options), std::move(handlers));
}

int run_agent(const Options& options) {
  const sigset_t signals = block_signals();
  const auto log = make_daemon_log();
  if (const Status set = set_level(*log, options.log_level); !set)
    return usage_error("--log-level: " + set.error().message);
  Node node;
  WatchClient client({.socket = path_of(options.watch)}, node, *log);
  auto metrics = serve(options.metrics_address, metrics_routes(node, client), {});
  auto page = metrics ? serve(options.page_address, page_routes(node), page_headers())
                      : Result<std::unique_ptr<HttpServer>>(metrics.error());
  if (!page) {
    log->error("cannot start: {}", page.error().message);
    log->flush();
    return kExitFailure;
  }
  client.start();
  if (*metrics) log->info("metrics on http://{}/metrics", (*metrics)->address());
  if (*page) log->info("the page is on http://{}/", (*page)->address());
  int received = 0;
  ::sigwait(&signals, &received);
  log->info("ending");
  client.stop();
  page->reset();
  metrics->reset();
  return kExitSuccess;
}

int run(const std::vector<std::string>& arguments) {
  Options options;
  const po::options_description known = table(options);
  po::variables_map given;
  try {
    po::store(po::command_line_parser(arguments)
                  .options(known)
                  .positional({})
                  .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
                  .run(),
              given);
    po::notify(given);
  } catch (const po::error& error) {
    return usage_error(error.what());
  }
  if (given.count("help") != 0) {
    std::cout
        << "usage: topolet-agent [OPTION…]\n\nShows what topoletd decides on this node: metrics for Prometheus, and a "
           "live page.\n\n"
        << known;
    return kExitSuccess;
  }
  if (given.count("version") != 0) {
    std::cout << "topolet-agent " TOPOLET_VERSION "\n";
    return kExitSuccess;
  }
  if (const auto mistake = mistake_in(options)) return usage_error(*mistake);
  return run_agent(options);
}

}  // namespace
}  // namespace topolet::agent

int main(int argc, char** argv) {
  topolet::fill_closed_standard_streams();
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return topolet::finish_output("topolet-agent", topolet::agent::run({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    if (const auto lost = topolet::report_lost_output("topolet-agent", error)) return *lost;
    topolet::print_error_line(fmt::format("topolet-agent failed: {}", error.what()));
    return topolet::kExitFailure;
  }
}
