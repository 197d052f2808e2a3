#include "cluster/extender/binder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/api/json_fields.hpp"

namespace topolet::extender {
namespace {

using api::ApiAnswer;
using api::ApiRequest;
using api::list_field;
using api::text_field;
using nlohmann::json;

constexpr const char* kZone = "topolet.io/zone";
constexpr int kPageSize = 200;
/// Promises that are asked after together.
constexpr std::size_t kMostAtOnce = 100;
/// How much later than it was made a request that binds may be sent.
constexpr std::chrono::milliseconds kPunctuality{50};
/// The time by which a call may exceed its deadline: the scheduler still waits then.
constexpr std::chrono::milliseconds kLateness{200};
/// Schedulers that are held up at a time.
constexpr std::size_t kMostHeld = 16;
/// A Binding whose answer is missing is over on the server so long after it is here.
constexpr std::chrono::milliseconds kAfterDoubt{1000};
constexpr std::chrono::milliseconds kListTimeout{10'000};
/// The pause before checking again whether the kept zones are known.
constexpr std::chrono::milliseconds kLookSoonAtKept{20};
constexpr const char* kTooMany = "more pods are bound at once than the API server is fast enough for";
constexpr const char* kNoLeader = "this replica of topolet-extender does not lead (any more)";

bool is_over(const json& pod) {
  const std::string phase = text_field(pod, "status", "phase");
  return phase == "Succeeded" || phase == "Failed";
}

/// Returns true if this request certainly binds nothing any more.
bool is_refusal(const ApiAnswer& answer) { return answer.status >= 400 && answer.status < 500; }

}  // namespace

struct Binder::Call {
  BindingArgs args;
  OnBound on_bound;
  RecentDemands::Read demand;
  std::uint64_t promise = 0;  ///< 0: none
  std::string annotation;     ///< empty: none
  bool has_begun = false;
  bool may_be_bound = false;  ///< by this attempt or an earlier one, now or soon
  /// The scheduler waits no longer, and may have given the node's room to others: nothing is begun after it.
  api::Api::Clock::time_point deadline{};
};

Binder::Binder(api::Api& api, SharedBook& shared, RecentDemands& recent, Options options,
               std::function<std::chrono::milliseconds()> time_to_bind, Log& log)
    : api_(api),
      shared_(shared),
      recent_(recent),
      options_(options),
      time_to_bind_(std::move(time_to_bind)),
      trouble_("the pods that are bound and pending cannot be listed", log) {
  api_.after(options_.look_after_every, [this, alive = is_alive_] {
    if (*alive) look_after_promises();
  });
}

void Binder::begin() {
  is_binding_ = true;
  has_begun_ = false;
  ++term_;
  pods_version_.clear();
  looked_at_.clear();
  {
    MutexLock lock(shared_.mutex);
    shared_.book.begin_term();
  }
  list_pending({});
}

void Binder::end() {
  is_binding_ = false;
  has_begun_ = false;
  for (const Shared& call : std::exchange(waiting_, {})) finish(call, kNoLeader);
}

void Binder::list_pods(const std::string& query, std::chrono::milliseconds timeout,
                       std::function<void(const ApiAnswer& answer)> then) {
  ApiRequest request{.verb = "list", .path = "/api/v1/pods?" + query, .timeout = timeout};
  api_.request(std::move(request),
               [this, alive = is_alive_, term = term_, then = std::move(then)](const ApiAnswer& answer) {
                 if (!*alive) return;
                 // Another term has begun, so the answer is of no use.
                 if (term != term_ || !is_binding_) {
                   ApiAnswer nothing;
                   nothing.error = kNoLeader;
                   return then(nothing);
                 }
                 if (answer.ok()) {
                   for (const json& pod : list_field(answer.body, "items")) remember(pod);
                 }
                 then(answer);
               });
}

void Binder::list_pending(const std::string& continue_token) {
  std::string query = fmt::format("limit={}&fieldSelector=", kPageSize);
  query += api::query_escaped("spec.nodeName!=,status.phase=Pending");
  if (!continue_token.empty()) query += "&continue=" + api::query_escaped(continue_token);
  list_pods(query, kListTimeout, [this, term = term_](const ApiAnswer& answer) {
    if (term != term_ || !is_binding_) return;
    if (!answer.ok()) {
      trouble_.failed(answer.error);
      api_.after(options_.retry, [this, alive = is_alive_, term] {
        if (*alive && term == term_ && is_binding_) list_pending({});
      });
      return;
    }
    trouble_.works();
    pods_version_ = text_field(answer.body, "metadata", "resourceVersion");
    const std::string next = text_field(answer.body, "metadata", "continue");
    if (!next.empty()) return list_pending(next);
    has_begun_ = true;
    begin_waiting();
  });
}

/// A pod that runs already is not Pending, and may be on a node whose object does not tell of it yet. The API server
/// answers from its memory, where it knows the pods by their nodes, if that is not older than the term.
void Binder::list_pods_of_node(const Shared& call, bool from_memory) {
  const std::string& node = call->args.node;
  const std::string selector = fmt::format("spec.nodeName={},status.phase!=Succeeded,status.phase!=Failed", node);
  std::string query = "fieldSelector=" + api::query_escaped(selector);
  if (from_memory) query += "&resourceVersionMatch=NotOlderThan&resourceVersion=" + api::query_escaped(pods_version_);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(call->deadline - api_.now());
  list_pods(query, left, [this, call, from_memory](const ApiAnswer& answer) {
    if (answer.ok()) {
      looked_at_.insert(call->args.node);
      return reserve(call);
    }
    // Its memory may be older where nothing has changed since.
    const bool is_too_old = from_memory && answer.status == 504 && api_.now() < call->deadline;
    if (is_too_old) return list_pods_of_node(call, false);
    finish(call, fmt::format("the pods of {} cannot be listed", call->args.node));
  });
}

void Binder::remember(const json& pod) {
  const auto annotation = read_zone_annotation(text_field(pod, "metadata", "annotations", kZone));
  if (!annotation || annotation->node != text_field(pod, "spec", "nodeName") || is_over(pod)) return;
  const RecentDemands::Read demand = read_demand_of(pod, options_.defaults, shared_);
  if (!*demand) return;
  MutexLock lock(shared_.mutex);
  shared_.book.remember(**demand, *annotation, api_.now());
}

void Binder::bind(BindingArgs args, OnBound on_bound) {
  const auto call = std::make_shared<Call>(
      Call{std::move(args), std::move(on_bound), {}, 0, {}, false, false, api_.now() + options_.patience});
  if (!is_binding_ || time_to_bind_() <= std::chrono::milliseconds::zero()) return finish(call, kNoLeader);
  waiting_.push_back(call);
  begin_waiting();
  if (call->has_begun) return;
  api_.after(options_.patience, [this, alive = is_alive_, call] {
    if (!*alive || std::erase(waiting_, call) == 0) return;
    finish(call, has_begun_ ? kTooMany : "what is bound already could not be read in time");
  });
}

/// Begins as many waiting calls as may be underway at once.
void Binder::begin_waiting() {
  // A call that ends at once would begin the next one within itself, and so on.
  if (std::exchange(is_beginning_, true)) return;
  while (has_begun_ && underway_ < options_.most_underway && !waiting_.empty()) {
    const Shared call = waiting_.front();
    waiting_.pop_front();
    if (call->deadline - api_.now() < options_.least_time) {
      finish(call, kTooMany);
    } else {
      bind_known(call);
    }
  }
  is_beginning_ = false;
  note_waiting();
}

void Binder::note_waiting() {
  shared_.has_waiting_binds = has_begun_ && !waiting_.empty();
  if (shared_.has_waiting_binds) return;
  for (const auto& held : std::exchange(held_, {})) std::exchange(*held, nullptr)();
}

void Binder::when_none_waits(std::function<void()> go_on) {
  if (!shared_.has_waiting_binds || held_.size() >= kMostHeld) return go_on();
  held_.push_back(std::make_shared<std::function<void()>>(std::move(go_on)));
  api_.after(options_.longest_hold, [this, alive = is_alive_, held = held_.back()] {
    if (!*alive || !*held) return;
    std::erase(held_, held);
    std::exchange(*held, nullptr)();
  });
}

void Binder::bind_known(const Shared& call) {
  ++underway_;
  call->has_begun = true;
  call->demand = recent_.find_by_uid(call->args.uid);
  if (call->demand) return reserve(call);
  get_pod(call->args.name_space, call->args.name, [this, call](const ApiAnswer& answer) {
    if (!answer.ok()) return finish(call, "the pod cannot be read: " + answer.error);
    if (text_field(answer.body, "metadata", "uid") != call->args.uid)
      return finish(call, "there is another pod of that name now");
    call->demand = read_demand_of(answer.body, options_.defaults, shared_);
    reserve(call);
  });
}

bool Binder::is_synced() const {
  MutexLock lock(shared_.mutex);
  return shared_.is_synced;
}

void Binder::reserve(const Shared& call) {
  const Result<Demand>& demand = *call->demand;
  if (!demand) return finish(call, demand.error().message);
  if (api_.now() >= call->deadline)
    return finish(call, "the API server is too slow, and the scheduler waits no longer");
  if (!demand->is_for_zones()) return send(call);
  // Without the nodes' objects it would be bound to no zone.
  if (!is_synced()) return finish(call, "the nodes' zones were not read yet");
  if (!shared_.is_kept_known) {
    api_.after(kLookSoonAtKept, [this, alive = is_alive_, call] {
      if (*alive) reserve(call);
    });
    return;
  }
  const std::string& node = call->args.node;
  if (!looked_at_.contains(node)) return list_pods_of_node(call, !pods_version_.empty());
  Result<ZoneBook::Reserved> reserved = [&] {
    MutexLock lock(shared_.mutex);
    return shared_.book.reserve(node, *demand, api_.now());
  }();
  if (reserved) {
    call->promise = reserved->promise;
    call->annotation = std::move(reserved->annotation);
    call->may_be_bound = reserved->is_again;
    return send(call);
  }
  // Without zones it is bound as any pod is, unless it wants a single one.
  if (reserved.error().code == Code::kNotFound && demand->policy != ZonePolicy::kSingle) return send(call);
  find_out(call, fmt::format("{}: {}", node, reserved.error().message));
}

void Binder::send(const Shared& call) {
  const BindingArgs& args = call->args;
  ApiRequest request{.verb = "create",
                     .method = "POST",
                     .path = fmt::format("/api/v1/namespaces/{}/pods/{}/binding", args.name_space, args.name)};
  json metadata = {{"name", args.name}, {"namespace", args.name_space}, {"uid", args.uid}};
  if (!call->annotation.empty()) metadata["annotations"][kZone] = call->annotation;
  request.body = {{"apiVersion", "v1"},
                  {"kind", "Binding"},
                  {"metadata", std::move(metadata)},
                  {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", args.node}}}};
  // The server gives it up by itself, too: what comes late could be of a leader that is none any more.
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(call->deadline - api_.now());
  request.timeout = std::min({options_.bind_timeout, time_to_bind_(), left});
  request.path += fmt::format("?timeout={}ms", request.timeout.count());
  request.is_still_wanted = [this, deadline = call->deadline, timeout = request.timeout] {
    const bool is_in_time = api_.now() + timeout <= deadline + kLateness;
    return is_binding_ && is_in_time && timeout > std::chrono::milliseconds::zero() &&
           time_to_bind_() + kPunctuality >= timeout;
  };
  api_.request(std::move(request), [this, alive = is_alive_, call](const ApiAnswer& answer) {
    if (*alive) take_answer(call, answer);
  });
}

void Binder::take_answer(const Shared& call, const ApiAnswer& answer) {
  if (answer.ok()) return finish_bound(call, nullptr);
  if (!answer.was_sent) return finish(call, answer.error);
  // A conflict: it is bound already, to this node even, or is another pod by now. The pod itself tells.
  if (is_refusal(answer) && answer.status != 409) return finish(call, answer.error);
  call->may_be_bound = true;
  find_out(call, answer.error);
}

void Binder::find_out(const Shared& call, const std::string& why) {
  get_pod(call->args.name_space, call->args.name,
          [this, call, why](const ApiAnswer& answer) { take_pod(call, answer, why); });
}

void Binder::take_pod(const Shared& call, const ApiAnswer& answer, const std::string& why) {
  const bool is_it = answer.ok() && text_field(answer.body, "metadata", "uid") == call->args.uid;
  const std::string node = text_field(answer.body, "spec", "nodeName");
  if (is_it && node == call->args.node) return finish_bound(call, answer.body);
  const bool is_elsewhere = is_it && !node.empty();
  const bool is_gone = answer.status == 404 || (answer.ok() && !is_it);
  if (is_elsewhere || is_gone) call->may_be_bound = false;
  finish(call, is_elsewhere ? fmt::format("the pod is bound to {} already", node) : why);
}

/// `pod`: as it was found bound; null: by this call, with our annotation.
void Binder::finish_bound(const Shared& call, const json& pod) {
  const Result<Demand>& demand = *call->demand;
  const auto other = read_zone_annotation(text_field(pod, "metadata", "annotations", kZone));
  {
    MutexLock lock(shared_.mutex);
    const bool is_ours = pod.is_null() || (other && other->text == call->annotation);
    if (call->promise != 0 && is_ours) {
      shared_.book.confirm(std::exchange(call->promise, 0), api_.now());
    } else if (other && demand && other->node == call->args.node) {
      if (call->promise != 0) shared_.book.release(std::exchange(call->promise, 0));
      shared_.book.remember(*demand, *other, api_.now());
    }
  }
  finish(call, {});
}

void Binder::finish(const Shared& call, const std::string& error) {
  if (call->promise != 0) {
    MutexLock lock(shared_.mutex);
    if (call->may_be_bound) {
      shared_.book.doubt(call->promise, api_.now());
      unsure_until_ = api_.now() + kAfterDoubt;
    } else {
      shared_.book.release(call->promise);
    }
    call->promise = 0;
  }
  // Waiting calls have not begun.
  if (call->has_begun) --underway_;
  call->on_bound(error);
  begin_waiting();
}

void Binder::get_pod(const std::string& name_space, const std::string& name, api::Api::OnAnswer on_answer) {
  ApiRequest request{.verb = "get", .path = fmt::format("/api/v1/namespaces/{}/pods/{}", name_space, name)};
  request.timeout = options_.bind_timeout;
  api_.request(std::move(request), [alive = is_alive_, on_answer = std::move(on_answer)](ApiAnswer answer) {
    if (*alive) on_answer(std::move(answer));
  });
}

void Binder::look_after_promises() {
  std::vector<Promise> due;
  if (is_binding_) {
    MutexLock lock(shared_.mutex);
    due = shared_.book.due(api_.now());
  }
  if (due.size() > kMostAtOnce) due.resize(kMostAtOnce);
  for (const Promise& promise : due) look_after(promise);
  api_.after(options_.look_after_every, [this, alive = is_alive_] {
    if (*alive) look_after_promises();
  });
}

void Binder::look_after(const Promise& promise) {
  get_pod(promise.name_space, promise.name, [this, promise](const ApiAnswer& answer) {
    if (!answer.ok() && answer.status != 404) return;
    const bool is_it = answer.ok() && text_field(answer.body, "metadata", "uid") == promise.uid;
    const bool is_there = is_it && text_field(answer.body, "spec", "nodeName") == promise.node && !is_over(answer.body);
    MutexLock lock(shared_.mutex);
    if (is_there) {
      shared_.book.keep_waiting(promise, api_.now());
    } else {
      shared_.book.drop(promise);
    }
  });
}

}  // namespace topolet::extender
