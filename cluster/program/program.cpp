#include "cluster/program/program.hpp"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cstdlib>
#include <iostream>

#include "core/base/escape.hpp"
#include "core/base/exit_status.hpp"
#include "core/base/standard_streams.hpp"

namespace topolet::program {
namespace {

namespace po = boost::program_options;

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

std::optional<int> read_command_line(const About& about, const std::vector<std::string>& arguments,
                                     const po::options_description& known) {
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
    return usage_error(about, error.what());
  }
  if (given.count("help") != 0) {
    std::cout << fmt::format("usage: {} [OPTION…]\n\n{}\n\n", about.name, about.purpose) << known;
    return kExitSuccess;
  }
  if (given.count("version") == 0) return std::nullopt;
  std::cout << about.name << " " TOPOLET_VERSION "\n";
  return kExitSuccess;
}

int usage_error(const About& about, const std::string& what) {
  print_error_line(fmt::format("{}: {}; {} --help lists the options", about.name, what, about.name));
  return kExitUsage;
}

int start_failed(Log& log, const Error& error) {
  log.error("cannot start: {}", error.message);
  log.flush();
  return kExitFailure;
}

sigset_t block_ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

void wait_for_end(const sigset_t& signals, Log& log) {
  int received = 0;
  ::sigwait(&signals, &received);
  log.info("ending");
}

Result<api::ApiServer> find_api_server(const std::string& where) {
  if (where != "in-cluster") return api::read_kubeconfig(where);
  return api::server_of_this_cluster({.variable = environment_variable});
}

int run_main(const About& about, int argc, char** argv,
             const std::function<int(const std::vector<std::string>&)>& run) {
  fill_closed_standard_streams();
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return finish_output(about.name, run({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    if (const auto lost = report_lost_output(about.name, error)) return *lost;
    print_error_line(fmt::format("{} failed: {}", about.name, error.what()));
    return kExitFailure;
  }
}

}  // namespace topolet::program
