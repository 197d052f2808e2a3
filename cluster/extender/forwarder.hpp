// Hands calls on to the replica that leads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "cluster/api/http_loop.hpp"
#include "cluster/api/leader_election.hpp"
#include "cluster/http/tls_files.hpp"
#include "core/base/log.hpp"
#include "core/base/result.hpp"

namespace topolet::extender {

/// On the loop's thread. A leader that stands still closes no connection: who waits for it is answered by somebody else
/// after a while, or as soon as another one leads.
class Forwarder {
 public:
  struct Options {
    /// For what others can answer too.
    std::chrono::milliseconds answerable{2000};
    /// For the rest: below the scheduler's, which is 5 s by default.
    std::chrono::milliseconds patience{4500};
    /// A leader that has not answered is not asked again for so long.
    std::chrono::milliseconds avoid{3000};
  };
  Forwarder(api::HttpLoop& loop, const http::TlsFiles& tls, Options options, Log& log)
      : loop_(loop), tls_(tls), options_(options), log_(log) {}
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  /// The body of the answer, or why there is none.
  using OnAnswer = std::function<void(Result<std::string> answer)>;
  /// `path`: "/filter".
  void send(const std::string& path, std::string body, const api::LeaderElection::Leader& leader, OnAnswer on_answer);
  /// Another one leads: nobody waits any more.
  void give_up();

 private:
  void finish(std::uint64_t number, const api::LeaderElection::Leader& leader, api::HttpAnswer answer);

  api::HttpLoop& loop_;
  const http::TlsFiles& tls_;
  const Options options_;
  Log& log_;
  struct Waiting {
    std::uint64_t transfer = 0;
    OnAnswer on_answer;
  };
  std::map<std::uint64_t, Waiting> waiting_;
  std::uint64_t last_number_ = 0;
  std::string silent_;  ///< the identity of a leader that did not answer
  api::HttpLoop::Time silent_until_{};
};

}  // namespace topolet::extender
