// topolet-extender without its sockets: answers what a kube-scheduler asks, follows the nodes' zones, and leads or
// forwards to the replica that does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cluster/api/api_client.hpp"
#include "cluster/api/http_loop.hpp"
#include "cluster/api/leader_election.hpp"
#include "cluster/api/reflector.hpp"
#include "cluster/extender/binder.hpp"
#include "cluster/extender/forwarder.hpp"
#include "cluster/extender/metrics.hpp"
#include "cluster/extender/preemptor.hpp"
#include "cluster/extender/rights.hpp"
#include "cluster/extender/shared_book.hpp"
#include "cluster/extender/waker.hpp"
#include "cluster/http/http_server.hpp"
#include "cluster/http/tls_files.hpp"
#include "core/base/clock.hpp"
#include "core/base/log.hpp"
#include "core/base/mutex.hpp"

namespace topolet::extender {

/// Works from start() to stop() on a thread of its own.
class Extender {
 public:
  struct Options {
    ZoneDefaults defaults;
    /// Absent: this is the only replica.
    std::optional<api::LeaderElection::Options> lease;
    Binder::Options binding;
    /// Common names of clients that may call, beside the own one.
    std::vector<std::string> client_names;
    Forwarder::Options forwarding = {};
    Clock clock = {};  ///< of what is told of calls and promises
  };
  /// `tls`: whose certificate this is, to forward with. It must outlive this.
  Extender(Options options, api::ApiServer server, http::TlsFiles& tls, Log& log);
  ~Extender();
  Extender(const Extender&) = delete;
  Extender& operator=(const Extender&) = delete;

  void start();
  /// Gives the Lease up first.
  void stop();

  // Any thread.

  /// Returns the refusal of a client; nothing if a client with that name in its certificate may call.
  std::optional<http::HttpResponse> refusal_of(const std::string& client_name);
  /// POST /filter, /prioritize, /bind, /preempt, of the scheduler, and the same below /forwarded, of another replica.
  void answer(http::HttpRequest request, http::HttpServer::Handlers::Respond respond);
  /// Returns the reason why it is not ready: missing data or a missing right; empty if it is. The same holds for a
  /// replica that does not lead, as it may lead at any time. Once ready, it stays so while the API server is away.
  std::string not_ready() const;
  bool is_leader() const { return leads_; }
  /// In the text format of Prometheus.
  std::string metrics() const;
  /// Returns the zones of each node and the promises on them, for people, as JSON.
  std::string zones_json() const;

 private:
  using Respond = http::HttpServer::Handlers::Respond;
  struct Incoming;

  void begin_on_loop();
  void give_up_when_idle(const std::shared_ptr<std::promise<void>>& given_up);
  void begin_leading();
  void end_leading();
  void look_for_silent_nodes();
  void take_object(std::string_view type, const nlohmann::json& object);
  Rights::Missing missing_rights() const TOPOLET_EXCLUDES(rights_mutex_);
  /// Null where it is not known any more.
  nlohmann::json node_json(const std::string& name) const;
  nlohmann::json promises_json() const;
  nlohmann::json kept_json() const;

  void answer_here(const std::shared_ptr<Incoming>& call);
  void filter(const Incoming& call);
  void note_waiting(const Demand& demand, const FilterResult& result) TOPOLET_REQUIRES(shared_.mutex);
  void prioritize(const Incoming& call);
  void bind(const std::shared_ptr<Incoming>& call);
  void preempt(const std::shared_ptr<Incoming>& call);
  void forward(const std::shared_ptr<Incoming>& call, const api::LeaderElection::Leader& leader);
  /// Returns the demand of a pod, from memory if this version of it was read before.
  RecentDemands::Read demand_of(const std::string& pod_version, const std::string& pod_json);
  /// An error that makes the scheduler try the pod again.
  void refuse(const Incoming& call, const std::string& why);
  void finish(const Incoming& call, std::string body, const char* outcome);
  std::chrono::steady_clock::duration time_since(std::chrono::steady_clock::time_point moment) const {
    return options_.clock.steady() - moment;
  }

  const Options options_;
  http::TlsFiles& tls_;
  Log& log_;
  api::HttpLoop loop_;
  api::ApiClient client_;
  mutable SharedBook shared_;
  mutable Mutex rights_mutex_;
  std::unique_ptr<Rights> rights_ TOPOLET_GUARDED_BY(rights_mutex_);
  RecentDemands recent_;
  Metrics metrics_;
  std::atomic<bool> leads_{false};
  bool is_running_ = false;
  // The loop's thread.
  std::vector<std::string> listed_;
  std::unique_ptr<api::Reflector> reflector_;
  std::unique_ptr<api::LeaderElection> election_;
  std::unique_ptr<Binder> binder_;
  std::unique_ptr<Preemptor> preemptor_;
  std::unique_ptr<Waker> waker_;
  std::unique_ptr<Forwarder> forwarder_;
  std::atomic<std::uint64_t> wake_ups_{0};
};

}  // namespace topolet::extender
