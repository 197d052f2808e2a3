// The ways from the client to a container runtime that are compared, and the processes on them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/child.hpp"
#include "tests/bench/load_client.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::bench {

inline const std::string kDirect = "direct";
inline const std::string kRelay = "relay";
inline const std::string kBare = "bare";
inline const std::string kTopolet = "topolet";
inline const std::string kTopoletFull = "topolet-full";
/// With daemon.record.
inline const std::string kTopoletRecorded = "topolet-recorded";
/// With kWatchers programs that follow all changes on its watch socket.
inline const std::string kTopoletWatched = "topolet-watched";
inline constexpr std::size_t kWatchers = 10;

/// A proxy that the user has started, with a runtime of `--serve-runtime` behind it.
struct Peer {
  std::string name;
  std::string socket;
  int pid = 0;
};

/// Where topoletd is, and what it runs on.
struct Topoletd {
  std::string program;
  std::string plugin_dir;
  std::string machine;  ///< in hwloc's words; empty: the machine that the benchmark runs on
};

/// A topoletd with its files in a directory of its own below `directory`, in front of a runtime.
struct DaemonOptions {
  Topoletd topoletd;
  std::string directory;
  std::string runtime;
  std::string durability = "normal";
  std::vector<std::string> more_flags = {};

  std::string socket() const { return directory + "/topolet.sock"; }
  std::string watch() const { return directory + "/watch.sock"; }
  std::string log() const { return directory + "/topoletd.log"; }
  std::string state_db() const { return directory + "/state/state.db"; }
};

/// Starts it as it is shipped: the plugins numa, gpu and smt, the control and the watch socket, audit and store. It
/// logs into a file.
std::unique_ptr<Child> start_topoletd(const DaemonOptions& options);

struct Way {
  std::string name;
  std::unique_ptr<Child> runtime = nullptr;  ///< of its own; null for a peer
  std::unique_ptr<Child> proxy = nullptr;    ///< null for a peer, and where nothing is in between
  std::unique_ptr<Child> watchers = nullptr;
  std::optional<Process> between = std::nullopt;
  std::unique_ptr<LoadClient> client = nullptr;
};

struct WayOptions {
  Topoletd topoletd;
  std::vector<Peer> peers;
  bool with_full_durability = false;
  bool with_watchers = false;
  bool with_record = false;
  std::vector<std::string> topoletd_flags = {};
};

/// All ways, the direct one first; those of our own with new processes, which end with the object.
class Ways {
 public:
  explicit Ways(const WayOptions& options);

  std::vector<Way>& all() { return ways_; }

 private:
  std::string file(const std::string& way, const std::string& name) const;
  std::string start_runtime(Way& way);
  void add_direct();
  void add_proxy(const std::string& name, std::vector<std::string> (*role)(const std::string&, const std::string&));
  /// With so many programs that watch it.
  void add_topoletd(const std::string& name, const WayOptions& options, const std::string& durability,
                    std::size_t watchers = 0);
  void add_peer(const Peer& peer);

  TempDir directory_;
  std::vector<Way> ways_;
};

}  // namespace topolet::bench
