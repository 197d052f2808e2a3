#include "tests/bench/ways.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "tests/bench/roles.hpp"

namespace topolet::bench {

std::unique_ptr<Child> start_topoletd(const DaemonOptions& options) {
  std::vector<std::string> command = {options.topoletd.program,
                                      "--config=/dev/null",
                                      "--daemon.listen=unix://" + options.socket(),
                                      "--daemon.control=" + options.directory + "/control.sock",
                                      "--daemon.watch=" + options.watch(),
                                      "--daemon.runtime=unix://" + options.runtime,
                                      "--daemon.state-dir=" + options.directory + "/state",
                                      "--daemon.plugin-dir=" + options.topoletd.plugin_dir,
                                      "--daemon.durability=" + options.durability,
                                      "--plugins.enable=numa",
                                      "--plugins.enable=gpu",
                                      "--plugins.enable=smt"};
  command.insert(command.end(), options.more_flags.begin(), options.more_flags.end());
  std::filesystem::create_directories(options.directory);
  try {
    return std::make_unique<Child>(command_role(options.log(), options.topoletd.machine, command), options.socket());
  } catch (const std::runtime_error& error) {
    // The file goes with its directory.
    std::ostringstream said;
    said << error.what() << "; its log:\n" << std::ifstream(options.log()).rdbuf();
    throw std::runtime_error(said.str());
  }
}

Ways::Ways(const WayOptions& options) {
  add_direct();
  add_proxy(kRelay, &relay_role);
  add_proxy(kBare, &bare_proxy_role);
  add_topoletd(kTopolet, options, "normal");
  if (options.with_full_durability) add_topoletd(kTopoletFull, options, "full");
  if (options.with_watchers) add_topoletd(kTopoletWatched, options, "normal", kWatchers);
  if (options.with_record) {
    WayOptions recorded = options;
    recorded.topoletd_flags.push_back("--daemon.record=" + file(kTopoletRecorded, "record"));
    add_topoletd(kTopoletRecorded, recorded, "normal");
  }
  for (const Peer& peer : options.peers) add_peer(peer);
}

std::string Ways::file(const std::string& way, const std::string& name) const {
  return directory_.file(way + "-" + name);
}

std::string Ways::start_runtime(Way& way) {
  std::string socket = file(way.name, "runtime.sock");
  way.runtime = std::make_unique<Child>(runtime_role(socket), socket);
  return socket;
}

void Ways::add_direct() {
  Way way{.name = kDirect};
  way.client = std::make_unique<LoadClient>(start_runtime(way));
  ways_.push_back(std::move(way));
}

void Ways::add_proxy(const std::string& name,
                     std::vector<std::string> (*role)(const std::string&, const std::string&)) {
  Way way{.name = name};
  const std::string runtime = start_runtime(way);
  const std::string socket = file(name, "proxy.sock");
  way.proxy = std::make_unique<Child>(role(socket, runtime), socket);
  way.between = way.proxy->process();
  way.client = std::make_unique<LoadClient>(socket);
  ways_.push_back(std::move(way));
}

void Ways::add_topoletd(const std::string& name, const WayOptions& options, const std::string& durability,
                        std::size_t watchers) {
  Way way{.name = name};
  const DaemonOptions daemon{.topoletd = options.topoletd,
                             .directory = file(name, "daemon"),
                             .runtime = start_runtime(way),
                             .durability = durability,
                             .more_flags = options.topoletd_flags};
  way.proxy = start_topoletd(daemon);
  if (watchers > 0) way.watchers = std::make_unique<Child>(watchers_role(daemon.watch(), watchers), daemon.watch());
  way.between = way.proxy->process();
  way.client = std::make_unique<LoadClient>(daemon.socket());
  ways_.push_back(std::move(way));
}

void Ways::add_peer(const Peer& peer) {
  ways_.push_back(
      {.name = peer.name, .between = Process(peer.pid), .client = std::make_unique<LoadClient>(peer.socket)});
}

}  // namespace topolet::bench
