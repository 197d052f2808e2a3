// The processes of a benchmark, apart from the one that measures.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace topolet::bench {

inline const std::string kServicePath = "/runtime.v1.RuntimeService/";
/// The runtime answers the calls of this method once RuntimeOptions::held_calls have come.
inline const std::string kHeldMethod = "ExecSync";
/// The runtime answers this one with kBigBytes.
inline const std::string kBigMethod = "ListContainerStats";
inline constexpr std::size_t kBigBytes = 1 << 20;
/// The runtime answers this one with kPushedMessages of kPushedBytes each, as fast as they are taken.
inline const std::string kStreamMethod = "GetContainerEvents";
inline constexpr std::size_t kPushedMessages = 100000;
inline constexpr std::size_t kPushedBytes = 4096;
/// The runtime answers this one, which is not one of the CRI, with how many updates of containers there were, in
/// decimal.
inline const std::string kCountUpdates = "CountUpdates";
/// A runtime that judges answers this one with what its judge has seen (judge.hpp), as JSON: "alone" and "overlaps" are
/// numbers, "first" is the report of the first overlap.
inline const std::string kVerdictMethod = "Verdict";

struct RuntimeOptions {
  std::size_t held_calls = 1;
  /// From an update of a container until its answer. The new resources are in force from a moment in between that is
  /// drawn. Updates of one container are carried out one after the other; every other call goes on meanwhile.
  std::chrono::milliseconds update_time{0};
  bool judges = false;     ///< has a judge: see judge.hpp
  std::uint64_t seed = 1;  ///< of what is drawn
};

// Arguments that start a process in a role. `listen` and `runtime` are paths of sockets.
std::vector<std::string> runtime_role(const std::string& listen, const RuntimeOptions& options = {});
std::vector<std::string> relay_role(const std::string& listen, const std::string& runtime);
std::vector<std::string> bare_proxy_role(const std::string& listen, const std::string& runtime);
/// See bad_clients.hpp.
std::vector<std::string> bad_clients_role(const std::string& socket, const std::string& kind, std::size_t connections);
std::vector<std::string> watchers_role(const std::string& socket, std::size_t count);
/// Runs `command` with its standard error in the file `log`, on a made-up machine if `machine` is not empty: see
/// made_up_machine.hpp. The time of the exec, as steady_clock counts, is written to the file exec_time_file(log).
std::vector<std::string> command_role(const std::string& log, const std::string& machine,
                                      const std::vector<std::string>& command);

inline std::string exec_time_file(const std::string& log) { return log + ".exec-time"; }

/// Does what the arguments say until it is killed; false at once if they name no role. To be called before anything
/// else of the program.
bool run_role(const std::vector<std::string>& arguments);

/// Follows all changes on a watch socket, so many times.
void run_watchers(const std::string& socket, std::size_t count);
/// A container runtime in memory, in the foreground: answers as containerd does what the benchmarks and topoletd call,
/// and every other unary call with the request's bytes.
void run_runtime(const std::string& listen, const RuntimeOptions& options);
/// Shuttles bytes and knows nothing of gRPC: the least that any process between the two can cost.
void run_relay(const std::string& listen, const std::string& runtime);
/// One completion queue, one thread, unary calls of any name, bytes and status; no metadata, no deadlines, no
/// cancellation. With the settings of gRPC that topolet has.
void run_bare_proxy(const std::string& listen, const std::string& runtime);

}  // namespace topolet::bench
