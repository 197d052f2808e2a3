#include "cluster/extender/extender.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cluster/api/json_fields.hpp"
#include "cluster/extender/rank.hpp"

namespace topolet::extender {
namespace {

using nlohmann::json;

constexpr const char* kTopologyPath = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies";
/// Objects are some kilobytes each, and ten times that while they are read.
constexpr int kPageSize = 50;
/// A pod has 15 seconds to end in.
constexpr std::chrono::seconds kLongestEnd{8};
constexpr std::chrono::milliseconds kLookAgain{50};
constexpr std::string_view kForwarded = "/forwarded";
constexpr const char* kJson = "application/json";
const api::Grants kGrants = {.account = "topolet-extender",
                             .rights = "deploy/kubernetes/extender.yaml",
                             .pod = "deploy/kubernetes/extender.yaml"};

bool is_call(std::string_view path) {
  return path == "/filter" || path == "/prioritize" || path == "/bind" || path == "/preempt";
}

const char* state_text(Promise::State state) {
  switch (state) {
    case Promise::State::kBinding:
      return "binding";
    case Promise::State::kInDoubt:
      return "in doubt";
    case Promise::State::kBound:
      return "bound";
  }
  return "";
}

json amounts_json(const Amounts& amounts, const ResourceNames& names) {
  json object = json::object();
  for (const Ask& ask : amounts.asks())
    object[names.name(ask.resource) + (ask.resource == kCpu ? "-milli" : "")] = ask.amount;
  return object;
}

}  // namespace

/// One call, until it is answered.
struct Extender::Incoming {
  std::string path;
  std::string body;
  Respond respond;
  bool is_forwarded = false;
  std::chrono::steady_clock::time_point begun;

  std::string name() const { return path.substr(1); }
};

Extender::Extender(Options options, api::ApiServer server, http::TlsFiles& tls, Log& log)
    : options_(std::move(options)), tls_(tls), log_(log), client_(loop_, std::move(server), kGrants) {}

Extender::~Extender() { stop(); }

void Extender::start() {
  is_running_ = true;
  loop_.start();
  loop_.post([this] { begin_on_loop(); });
}

void Extender::stop() {
  if (!std::exchange(is_running_, false)) return;
  // Another replica that waits for the Lease can begin before it expires.
  auto given_up = std::make_shared<std::promise<void>>();
  auto done = given_up->get_future();
  loop_.post([this, given_up] {
    if (!election_) return given_up->set_value();
    election_->stand_down();
    give_up_when_idle(given_up);
  });
  done.wait_for(kLongestEnd);
  loop_.stop();
  forwarder_.reset();
  waker_.reset();
  preemptor_.reset();
  binder_.reset();
  election_.reset();
  reflector_.reset();
  MutexLock lock(rights_mutex_);
  rights_.reset();
}

/// Gives up the lease once no Binding of this leader is underway.
void Extender::give_up_when_idle(const std::shared_ptr<std::promise<void>>& given_up) {
  if (!binder_->has_binds_underway()) return election_->give_up([given_up] { given_up->set_value(); });
  loop_.after(kLookAgain, [this, given_up] { give_up_when_idle(given_up); });
}

void Extender::begin_on_loop() {
  const auto time_to_bind = [this] { return election_ ? election_->time_left() : options_.binding.bind_timeout; };
  binder_ = std::make_unique<Binder>(client_, shared_, recent_, options_.binding, time_to_bind, log_);
  Preemptor::Options preempting;
  preempting.defaults = options_.defaults;
  preemptor_ = std::make_unique<Preemptor>(client_, shared_, std::move(preempting), log_);
  waker_ = std::make_unique<Waker>(client_, shared_, wake_ups_, log_);
  forwarder_ = std::make_unique<Forwarder>(loop_, tls_, options_.forwarding, log_);
  api::Reflector::Options following;
  following.name = "the NodeResourceTopologies";
  following.path = kTopologyPath;
  following.page_size = kPageSize;
  api::Reflector::Handlers handlers;
  handlers.on_listed = [this](const json& object) {
    listed_.push_back(api::text_field(object, "metadata", "name"));
    take_object("ADDED", object);
  };
  handlers.on_list = [this](const std::vector<json>&) {
    {
      MutexLock lock(shared_.mutex);
      shared_.heartbeats.keep_only(listed_);
      shared_.book.keep_only(std::exchange(listed_, {}));
      shared_.is_synced = true;
      log_.info("{} nodes publish their zones", shared_.book.node_count());
    }
    ::malloc_trim(0);
  };
  handlers.on_change = [this](std::string_view type, const json& object) { take_object(type, object); };
  reflector_ = std::make_unique<api::Reflector>(client_, std::move(following), std::move(handlers), log_);
  reflector_->start();
  look_for_silent_nodes();
  {
    MutexLock lock(rights_mutex_);
    rights_ = std::make_unique<Rights>(client_, options_.lease, log_);
  }
  if (!options_.lease) return begin_leading();
  election_ = std::make_unique<api::LeaderElection>(
      client_, *options_.lease, api::LeaderElection::Handlers{[this] { begin_leading(); }, [this] { end_leading(); }},
      log_);
  election_->start();
}

void Extender::begin_leading() {
  leads_ = true;
  binder_->begin();
  preemptor_->begin();
  waker_->begin();
  forwarder_->give_up();
}

void Extender::end_leading() {
  leads_ = false;
  binder_->end();
  preemptor_->end();
  waker_->end();
}

/// Nobody tells of an agent that has ended.
void Extender::look_for_silent_nodes() {
  constexpr std::size_t kMostNamed = 10;
  std::vector<std::string> silent;
  {
    MutexLock lock(shared_.mutex);
    silent = shared_.heartbeats.pass(loop_.now(), reflector_->is_watching());
    for (const std::string& name : silent) shared_.book.set_silent(name, true);
  }
  if (!silent.empty()) {
    const std::size_t named = std::min(silent.size(), kMostNamed);
    log_.warn("nothing is heard any more of the agents of {} nodes, which get no pods that ask for zones: {}{}",
              silent.size(), fmt::join(silent.begin(), silent.begin() + static_cast<std::ptrdiff_t>(named), ", "),
              named < silent.size() ? ", …" : "");
  }
  loop_.after(Heartbeats::kLookEvery, [this] { look_for_silent_nodes(); });
}

void Extender::take_object(std::string_view type, const json& object) {
  MutexLock lock(shared_.mutex);
  if (type == "DELETED") {
    const std::string name = api::text_field(object, "metadata", "name");
    shared_.heartbeats.forget(name);
    return shared_.book.remove_node(name);
  }
  NodeZones node = read_node_zones(object, shared_.book.names());
  if (node.name.empty()) return;
  if (shared_.heartbeats.note(node.name, node.heartbeat)) {
    shared_.book.set_silent(node.name, false);
    log_.info("the agent of node {} is heard of again", node.name);
  }
  shared_.book.set_node(std::move(node));
}

std::optional<http::HttpResponse> Extender::refusal_of(const std::string& client_name) {
  const auto& names = options_.client_names;
  const bool is_own = !client_name.empty() && client_name == tls_.names().common_name;
  if (is_own || std::find(names.begin(), names.end(), client_name) != names.end()) return std::nullopt;
  metrics_.add_refused_client();
  return http::HttpResponse{
      403, "text/plain; charset=utf-8",
      fmt::format("the name '{}' in the client's certificate may not call; see --client-name\n", client_name)};
}

void Extender::answer(http::HttpRequest request, Respond respond) {
  auto call = std::make_shared<Incoming>();
  call->path = request.path;
  call->body = std::move(request.body);
  call->respond = std::move(respond);
  call->begun = options_.clock.steady();
  if (call->path.starts_with(kForwarded)) {
    call->is_forwarded = true;
    call->path.erase(0, kForwarded.size());
  }
  if (!is_call(call->path)) {
    call->path = "/other";
    call->respond({404, "text/plain; charset=utf-8", "there is: POST /filter, /prioritize, /bind, /preempt\n"});
    return metrics_.add_call("other", "unknown", {});
  }
  if (leads_ || call->is_forwarded || !options_.lease) return answer_here(call);
  loop_.post([this, call] {
    const auto leader = election_ ? election_->other_leader() : std::nullopt;
    if (!leader || leader->address.empty()) return answer_here(call);
    forward(call, *leader);
  });
}

void Extender::answer_here(const std::shared_ptr<Incoming>& call) {
  if (call->path == "/bind") return bind(call);
  if (call->path == "/preempt") return preempt(call);
  {
    MutexLock lock(shared_.mutex);
    if (!shared_.is_synced) return refuse(*call, "topolet-extender has not read the nodes' zones yet");
  }
  if (call->path == "/prioritize") return prioritize(*call);
  if (!shared_.has_waiting_binds) return filter(*call);
  loop_.post([this, call] { binder_->when_none_waits([this, call] { filter(*call); }); });
}

void Extender::refuse(const Incoming& call, const std::string& why) {
  if (call.path == "/filter") return finish(call, filter_error_text(why), "error");
  if (call.path == "/bind") return finish(call, binding_result_text(why), "error");
  metrics_.add_call(call.name(), "error", time_since(call.begun));
  call.respond({503, "text/plain; charset=utf-8", why + '\n'});
}

void Extender::finish(const Incoming& call, std::string body, const char* outcome) {
  metrics_.add_call(call.name(), outcome, time_since(call.begun));
  call.respond({200, kJson, std::move(body)});
}

RecentDemands::Read Extender::demand_of(const std::string& pod_version, const std::string& pod_json) {
  if (RecentDemands::Read known = recent_.find(pod_version)) return known;
  const json pod = json::parse(pod_json, nullptr, false);
  RecentDemands::Read demand = read_demand_of(pod, options_.defaults, shared_);
  recent_.add(pod_version, api::text_field(pod, "metadata", "uid"), demand);
  return demand;
}

void Extender::filter(const Incoming& call) {
  const Result<ExtenderArgs> args = read_extender_args(call.body);
  if (!args) return refuse(call, args.error().message);
  const RecentDemands::Read demand = demand_of(args->pod_version, args->pod_json);
  FilterResult result;
  if (!*demand) {
    // Only a change of the pod helps, and its author sees the reason.
    for (const std::string_view name : args->node_names)
      result.unresolvable.emplace_back(name, "topolet: " + demand->error().message);
  } else if (!(*demand)->is_for_zones()) {
    result.node_names = args->node_names;
  } else {
    MutexLock lock(shared_.mutex);
    result = filter_nodes(shared_.book, **demand, args->node_names);
    note_waiting(**demand, result);
  }
  finish(call, filter_result_text(result), result.node_names.empty() ? "none fits" : "ok");
}

/// Remembers the pod, so that schedulers are woken when there is more room. With the book's lock held.
void Extender::note_waiting(const Demand& demand, const FilterResult& result) {
  if (!result.node_names.empty()) return shared_.waiting.forget(demand.uid);
  std::vector<std::string_view> nodes;
  for (const auto* refused : {&result.failed, &result.unresolvable}) {
    for (const auto& [node, why] : *refused) nodes.push_back(node);
  }
  shared_.waiting.reject(demand, nodes, options_.clock.steady());
}

void Extender::prioritize(const Incoming& call) {
  const Result<ExtenderArgs> args = read_extender_args(call.body);
  if (!args) {
    metrics_.add_call(call.name(), "error", time_since(call.begun));
    return call.respond({400, "text/plain; charset=utf-8", args.error().message + '\n'});
  }
  const RecentDemands::Read demand = demand_of(args->pod_version, args->pod_json);
  std::vector<std::pair<std::string_view, int>> scores;
  if (*demand && (*demand)->is_for_zones()) {
    MutexLock lock(shared_.mutex);
    scores = score_nodes(shared_.book, **demand, args->node_names);
  } else {
    for (const std::string_view name : args->node_names) scores.emplace_back(name, 0);
  }
  finish(call, priorities_text(scores), "ok");
}

void Extender::bind(const std::shared_ptr<Incoming>& call) {
  Result<BindingArgs> args = read_binding_args(call->body);
  if (!args) return refuse(*call, args.error().message);
  loop_.post([this, call, args = *std::move(args)]() mutable {
    if (!binder_) return refuse(*call, "topolet-extender is starting");
    binder_->bind(std::move(args), [this, call](const std::string& error) {
      if (!error.empty()) return refuse(*call, "topolet: " + error);
      finish(*call, binding_result_text({}), "ok");
    });
  });
}

/// Whoever does not know enough has nobody evicted.
void Extender::preempt(const std::shared_ptr<Incoming>& call) {
  Result<PreemptionArgs> args = read_preemption_args(call->body);
  if (!args) {
    metrics_.add_call(call->name(), "error", time_since(call->begun));
    return call->respond({400, "text/plain; charset=utf-8", args.error().message + '\n'});
  }
  loop_.post([this, call, args = *std::move(args)]() mutable {
    const auto answer = [this, call](const std::vector<NodeVictims>& nodes) {
      finish(*call, preemption_result_text(nodes), nodes.empty() ? "nobody" : "ok");
    };
    const bool is_synced = [this] {
      MutexLock lock(shared_.mutex);
      return shared_.is_synced;
    }();
    if (!preemptor_ || !is_synced) return answer({});
    const RecentDemands::Read demand = demand_of(args.pod_version, args.pod_json);
    preemptor_->preempt(std::move(args), demand, answer);
  });
}

/// On the loop's thread. Where the leader does not answer, filter and prioritize are answered from what is known here:
/// whether a zone is promised already is decided at the binding, which only a leader does. A binding is tried again by
/// its scheduler, who alone knows whether it still waits for it.
void Extender::forward(const std::shared_ptr<Incoming>& call, const api::LeaderElection::Leader& leader) {
  forwarder_->send(call->path, call->body, leader, [this, call](Result<std::string> answer) {
    if (answer) {
      metrics_.add_call(call->name(), "forwarded", time_since(call->begun));
      return call->respond({200, kJson, *std::move(answer)});
    }
    if (call->path != "/bind") return answer_here(call);
    refuse(*call, "topolet: " + answer.error().message);
  });
}

Rights::Missing Extender::missing_rights() const {
  MutexLock lock(rights_mutex_);
  return rights_ ? rights_->missing() : Rights::Missing();
}

std::string Extender::not_ready() const {
  const std::optional<std::string> missing = missing_rights().needed;
  if (!missing) return "the API server has not told yet what topolet-extender may do";
  if (!missing->empty())
    return fmt::format("topolet-extender may not {}: deploy/kubernetes/extender.yaml grants it", *missing);
  MutexLock lock(shared_.mutex);
  return shared_.is_synced ? "" : "the NodeResourceTopologies were not read yet";
}

std::string Extender::metrics() const {
  Numbers now;
  now.leads = leads_;
  now.wake_ups = wake_ups_;
  now.requests = client_.counts();
  const Rights::Missing missing = missing_rights();
  now.missing_needed_rights = missing.needed_count;
  now.missing_useful_rights = missing.useful_count;
  {
    MutexLock lock(shared_.mutex);
    now.nodes = shared_.book.node_count();
    now.stale_nodes = shared_.book.stale_nodes();
    now.promises = shared_.book.promise_count();
    now.kept = shared_.book.kept().all().size();
    now.waiting = shared_.waiting.size();
  }
  return metrics_.text(now);
}

json Extender::node_json(const std::string& name) const {
  MutexLock lock(shared_.mutex);
  const auto view = shared_.book.view(name);
  if (!view) return nullptr;
  const ResourceNames& names = shared_.book.names();
  json zones = json::array();
  for (std::size_t i = 0; i < view->zones.zones.size(); ++i) {
    const Zone& zone = view->zones.zones[i];
    json entry = {{"zone", zone.os_index},
                  {"allocatable", amounts_json(zone.allocatable, names)},
                  {"available", amounts_json(zone.available, names)},
                  {"free", amounts_json(view->free[i], names)}};
    if (zone.effective_cpu_milli) entry["effective-cpu-milli"] = *zone.effective_cpu_milli;
    zones.push_back(std::move(entry));
  }
  return {
      {"node", name}, {"generation", view->zones.generation}, {"stale", view->is_stale}, {"zones", std::move(zones)}};
}

json Extender::promises_json() const {
  json all = json::array();
  const auto now = options_.clock.steady();
  MutexLock lock(shared_.mutex);
  const ResourceNames& names = shared_.book.names();
  for (const Promise& promise : shared_.book.promises()) {
    json taken = json::object();
    for (const auto& [zone, amounts] : promise.taken) taken[std::to_string(zone)] = amounts_json(amounts, names);
    all.push_back({{"pod", promise.name_space + '/' + promise.name},
                   {"uid", promise.uid},
                   {"node", promise.node},
                   {"state", state_text(promise.state)},
                   {"seconds", std::chrono::duration_cast<std::chrono::seconds>(now - promise.since).count()},
                   {"zones", std::move(taken)}});
  }
  return all;
}

json Extender::kept_json() const {
  json all = json::array();
  const auto now = options_.clock.steady();
  MutexLock lock(shared_.mutex);
  for (const Kept& kept : shared_.book.kept().all()) {
    json taken = json::object();
    for (const auto& [zone, amounts] : kept.taken)
      taken[std::to_string(zone)] = amounts_json(amounts, shared_.book.names());
    all.push_back({{"pod", kept.name_space + '/' + kept.name},
                   {"uid", kept.uid},
                   {"node", kept.node},
                   {"priority", kept.priority},
                   {"nominated", kept.is_nominated},
                   {"seconds", std::chrono::duration_cast<std::chrono::seconds>(now - kept.since).count()},
                   {"zones", std::move(taken)}});
  }
  return all;
}

/// Node by node: calls that come meanwhile do not wait for thousands of them.
std::string Extender::zones_json() const {
  const std::vector<std::string> names = [this] {
    MutexLock lock(shared_.mutex);
    return shared_.book.node_names();
  }();
  json nodes = json::array();
  for (const std::string& name : names) {
    if (json node = node_json(name); !node.is_null()) nodes.push_back(std::move(node));
  }
  const json all = {
      {"leads", leads_.load()}, {"nodes", std::move(nodes)}, {"promises", promises_json()}, {"kept", kept_json()}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
}

}  // namespace topolet::extender
