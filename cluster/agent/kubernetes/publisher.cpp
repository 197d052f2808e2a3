#include "cluster/agent/kubernetes/publisher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/agent/kubernetes/pending.hpp"
#include "cluster/agent/kubernetes/zones.hpp"
#include "cluster/api/json_fields.hpp"
#include "core/base/rfc3339.hpp"

namespace topolet::agent {
namespace {

using api::list_field;
using api::text_field;
using nlohmann::json;

/// From a hint until it is acted upon, for more to come.
constexpr std::chrono::milliseconds kCoalesce{250};
/// Between two writes, and a tenth of it at random.
constexpr std::chrono::milliseconds kShortestPeriod{1000};
/// The same for a pod that was just bound, and for a container that was moved. Until it is published, a scheduler that
/// reads the object anew forgets that it has given the room away, and gives it to another pod as well: so a few writes
/// may follow each other at once, and one more each kShortestPeriod.
constexpr std::chrono::milliseconds kUrgentCoalesce{10};
constexpr int kUrgentBurst = 4;
/// A scheduler that looked at a change too early looks again only when the object changes once more. So that it does,
/// the object is touched one of the scheduler's periods and this long after a change.
constexpr std::chrono::milliseconds kTouchMargin{2000};
constexpr std::chrono::milliseconds kFirstRetry{1000};
/// The longest pause after a failure; with the random tenth, up to five seconds: so soon after the API server is back,
/// it has the object.
constexpr std::chrono::milliseconds kLongestRetry{4500};
/// Until it is asked again for a Node that it does not have.
constexpr std::chrono::milliseconds kNodePeriod{4500};
/// Between two writes while another program writes the same object.
constexpr std::chrono::milliseconds kContestedPeriod{10'000};
/// A program that writes the object is said to do so for this long after it has.
constexpr std::chrono::minutes kContestMemory{10};
/// The time in which deletions are counted: a program that deletes the object more often does so all the time.
constexpr std::chrono::minutes kDeletionsMemory{1};
constexpr int kMaxDeletions = 2;
/// After so many conflicts in a row somebody writes all the time, and waiting is better than racing.
constexpr int kMaxConflicts = 3;
constexpr std::size_t kRememberedVersions = 16;

/// Returns the name of the object's last writer, if it gives one.
std::string last_writer(const json& object) {
  std::string writer;
  std::string newest;
  for (const json& entry : list_field(object, "metadata", "managedFields")) {
    const std::string time = text_field(entry, "time");
    if (time < newest) continue;
    newest = time;
    writer = text_field(entry, "manager");
  }
  return writer.empty() ? "another program" : writer;
}

/// Devices of an init container are reused by those after it, also by other init containers. All others are their
/// container's until the pod ends.
api::Amounts devices_left(api::Pod pod, const DeviceInventory::Given& given) {
  api::Amounts reusable;
  for (api::PodContainer& container : pod.containers) {
    const auto own = given.find(container.name);
    if (own == given.end()) continue;
    const api::Amounts amounts{.devices = own->second};
    if (container.kind == api::PodContainer::Kind::kInit) {
      reusable.raise_to(amounts);
    } else {
      container.requests.subtract(amounts);
      reusable.subtract(amounts);
    }
  }
  api::Amounts left = pod.effective_requests();
  left.subtract(reusable);
  return left;
}

}  // namespace

std::map<std::string, std::int64_t> pending_devices(const BoundPods& pods, const DeviceInventory::State& devices) {
  static const DeviceInventory::Given kNone;
  std::map<std::string, std::int64_t> pending;
  for (const api::Pod* pod : pods.in_order()) {
    if (pod->is_terminal()) continue;
    const auto found = devices.given.find({pod->name_space, pod->name});
    const api::Amounts left = devices_left(*pod, found == devices.given.end() ? kNone : found->second);
    for (const auto& [resource, count] : left.devices) pending[resource] += count;
  }
  return pending;
}

Publisher::Publisher(Options options, Deps deps)
    : options_(std::move(options)),
      deps_(std::move(deps)),
      trouble_(fmt::format("the NodeResourceTopology {} cannot be written", options_.node_name), deps_.log),
      waker_({options_.node_name, options_.scheduler_names, options_.lease_namespace, options_.lease_name}, deps_.api,
             deps_.log),
      owner_(options_.node_name, deps_.api, deps_.log),
      setup_warnings_(options_.node_name, deps_.log),
      urgent_writes_(kUrgentBurst),
      urgent_counted_(deps_.api.now()) {}

Publisher::Counts Publisher::counts() const {
  Counts counts = counts_;
  counts.wake_ups = waker_.wake_ups();
  if (deps_.api.now() - last_contest_ >= kContestMemory) counts.other_writer.clear();
  return counts;
}

std::string Publisher::object_path() const { return fmt::format("{}/{}", kTopologyPath, options_.node_name); }

std::chrono::milliseconds Publisher::jittered(std::chrono::milliseconds duration) {
  return duration +
         std::chrono::milliseconds(std::uniform_int_distribution<std::int64_t>(0, duration.count() / 10)(random_));
}

void Publisher::schedule(Urgency urgency) {
  if (is_busy_) {
    is_changed_ = true;
    is_urgent_ = is_urgent_ || urgency == Urgency::kUrgent;
  } else if (urgency == Urgency::kUrgent) {
    schedule_at(std::max({deps_.api.now() + kUrgentCoalesce, next_urgent_write(), not_before_}));
  } else {
    schedule_at(std::max({deps_.api.now() + kCoalesce, next_write_, not_before_}));
  }
}

/// Not later than was asked for before.
void Publisher::schedule_at(Time due) {
  if (due_ && *due_ <= due) return;
  due_ = due;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(due - deps_.api.now());
  deps_.api.after(std::max(std::chrono::milliseconds(0), wait), [this, due] {
    if (due_ != due) return;  // it was made sooner
    due_.reset();
    attempt();
  });
}

Publisher::Time Publisher::next_urgent_write() {
  const Time now = deps_.api.now();
  const std::chrono::duration<double, std::milli> passed = now - std::exchange(urgent_counted_, now);
  urgent_writes_ = std::min<double>(kUrgentBurst, urgent_writes_ + passed / kShortestPeriod);
  return urgent_writes_ >= 1 ? now : std::max(now, next_write_);
}

/// Writes the object if it has changed. If a fact is unknown, nothing is written: the change that makes it known calls
/// this again.
void Publisher::attempt() {
  const std::optional<watch::v1::Snapshot> node = deps_.node_state();
  const BoundPods* pods = deps_.pods();
  const DeviceInventory::State* devices = deps_.devices();
  if (!node || pods == nullptr || devices == nullptr || !is_object_known_) return;
  // Since this was scheduled, somebody else has written the object.
  if (deps_.api.now() < not_before_) return schedule_at(not_before_);
  is_busy_ = true;
  is_changed_ = is_urgent_ = false;
  if (owner_.is_due()) return look_for_node();
  Attempt attempt{node->instance(), pods->fingerprint(), pods->acknowledged(), *devices,
                  pending_devices(*pods, *devices)};
  const BookedContainers booked = booked_containers(*node);
  static const DeviceInventory::Near kNone;
  watch::v1::FitsRequest request;
  for (const api::Pod* pod : pods->in_order()) {
    const auto near = devices->near.find({pod->name_space, pod->name});
    const bool counts = near != devices->near.end() && places_by_devices(*node);
    std::vector<watch::v1::PendingContainer> pending = pending_containers(*pod, booked, counts ? near->second : kNone);
    attempt.pending_cpus += whole_cpus_of(pending, *pod, booked);
    for (watch::v1::PendingContainer& container : pending) *request.add_pending() = std::move(container);
  }
  deps_.ask_what_fits(std::move(request),
                      [this, attempt = std::move(attempt)](const auto& fits) { take_fits(attempt, fits); });
}

/// The object belongs to the Node, and goes with it. Without one there is nobody to schedule for.
void Publisher::look_for_node() {
  owner_.ask([this](const Status& found) {
    if (found || found.error().code == Code::kNotFound) counts_.has_node = owner_.is_there();
    if (!found && found.error().code != Code::kNotFound) return failed(found.error().message);
    if (!found) {
      not_before_ = std::max(not_before_, deps_.api.now() + jittered(kNodePeriod));
      is_changed_ = true;
      return end_attempt();
    }
    is_busy_ = false;
    attempt();
  });
}

void Publisher::take_fits(const Attempt& attempt, const Result<watch::v1::FitsResponse>& fits) {
  if (!fits) return failed("topoletd does not tell what fits: " + fits.error().message);
  const std::optional<watch::v1::Snapshot> node = deps_.node_state();
  // Another topoletd, or one that is not sure any more: it will be said when that has changed.
  const bool is_one =
      node && fits->reconciled() && fits->instance() == attempt.instance && node->instance() == attempt.instance;
  if (!is_one) {
    not_before_ = deps_.api.now() + kFirstRetry;
    is_changed_ = true;
    return end_attempt();
  }
  setup_warnings_.look_at(*fits);
  counts_.setup_warnings = setup_warnings_.now();
  counts_.unplaced_containers = static_cast<std::uint64_t>(fits->unplaced_size());
  const TopologyFacts facts{.node_name = options_.node_name,
                            .node_uid = owner_.uid(),
                            .node = *node,
                            .fits = *fits,
                            .devices = attempt.devices.counts,
                            .pending_devices = attempt.pending_devices,
                            .pending_cpus = attempt.pending_cpus,
                            .fingerprint = attempt.fingerprint,
                            .acknowledged = attempt.acknowledged};
  const json ours = make_topology_object(facts);
  const bool is_new = !tell_the_same(ours, current_);
  if (!is_new && !is_touch_due_ && !is_beat_due_) {
    succeeded();
    retry_ = {};
    return end_attempt();
  }
  json object = with_what_others_wrote(ours, current_);
  const std::string now = rfc3339(deps_.api.wall_time());
  if (!is_new && is_touch_due_) touch(object, now);
  set_heartbeat(object, now);
  write(std::move(object));
}

void Publisher::write(json object) {
  const bool is_there = current_.is_object();
  last_sent_ = object;
  next_write_ = deps_.api.now() + jittered(kShortestPeriod);
  next_urgent_write();
  urgent_writes_ = std::max<double>(0, urgent_writes_ - 1);
  api::ApiRequest request{.verb = is_there ? "update" : "create",
                          .method = is_there ? "PUT" : "POST",
                          .path = is_there ? object_path() : kTopologyPath,
                          .body = object};
  deps_.api.request(std::move(request), [this, before = current_, object = std::move(object)](const auto& answer) {
    take_write(before, object, answer);
  });
}

void Publisher::take_write(const json& before, const json& object, const api::ApiAnswer& answer) {
  const bool was_there = before.is_object();
  if (answer.ok()) return written(before, answer.body.is_object() ? answer.body : object);
  ++counts_.failed_writes;
  counts_.is_refused = answer.status == 401 || answer.status == 403;
  // Changed or made by somebody else, or deleted, since it was seen.
  if (answer.status == 409 || (answer.status == 404 && was_there)) return resolve_conflict();
  if (answer.status == 404)
    return failed(answer.error + "; the kind NodeResourceTopology comes from deploy/kubernetes/crd.yaml");
  failed(answer.error);
}

void Publisher::resolve_conflict() {
  if (++conflicts_ > kMaxConflicts) {
    conflicts_ = 0;  // the next time, the object is read again
    return failed("somebody else writes it all the time");
  }
  deps_.api.request({.verb = "get", .path = object_path()}, [this](const api::ApiAnswer& answer) {
    if (!answer.ok() && answer.status != 404) return failed(answer.error);
    seen_meanwhile_.reset();
    const bool is_contested = judge(answer.ok() ? answer.body : json());
    is_changed_ = true;
    // Once at once: what was to be written is not there yet.
    if (conflicts_ == 1 && !is_contested) is_urgent_ = true;
    end_attempt();
  });
}

void Publisher::written(const json& before, json object) {
  ++counts_.writes;
  conflicts_ = 0;
  retry_ = {};
  succeeded();
  own_versions_.push_back(text_field(object, "metadata", "resourceVersion"));
  if (own_versions_.size() > kRememberedVersions) own_versions_.pop_front();
  for (const json& attribute : list_field(object, "attributes")) {
    if (text_field(attribute, "name") == "topolet.io/generation")
      counts_.generation = std::strtoull(text_field(attribute, "value").c_str(), nullptr, 10);
  }
  const bool is_same = tell_the_same(before, object);
  last_written_ = current_ = std::move(object);
  const bool was_touch = std::exchange(is_touch_due_, false);
  beat_later();
  if (is_same) {
    ++(was_touch ? counts_.touches : counts_.heartbeats);
  } else {
    touch_later();
    if (before.is_object() && has_grown(before, current_)) waker_.zone_has_grown();
  }
  end_attempt();
}

void Publisher::touch_later() {
  const auto wait = options_.scheduler_resync + kTouchMargin;
  const Time due = deps_.api.now() + wait;
  touch_due_ = due;
  deps_.api.after(wait, [this, due] {
    if (touch_due_ != due) return;  // the object has changed again
    touch_due_.reset();
    is_touch_due_ = true;
    schedule(Urgency::kUsual);
  });
}

void Publisher::beat_later() {
  is_beat_due_ = false;
  std::uniform_int_distribution<std::int64_t> sooner(0, options_.heartbeat.count() / 10);
  const std::chrono::milliseconds wait = options_.heartbeat - std::chrono::milliseconds(sooner(random_));
  const Time due = deps_.api.now() + wait;
  beat_due_ = due;
  deps_.api.after(wait, [this, due] {
    if (beat_due_ != due) return;  // the object was written meanwhile
    is_beat_due_ = true;
    owner_.doubt_what_is_old();
    schedule(Urgency::kUsual);
  });
}

void Publisher::succeeded() {
  trouble_.works();
  counts_.trouble.clear();
  counts_.is_refused = false;
}

void Publisher::failed(const std::string& why) {
  trouble_.failed(why);
  counts_.trouble = why;
  retry_ = std::clamp(2 * retry_, kFirstRetry, kLongestRetry);
  not_before_ = std::max(not_before_, deps_.api.now() + jittered(retry_));
  is_changed_ = true;
  end_attempt();
}

void Publisher::end_attempt() {
  is_busy_ = false;
  if (seen_meanwhile_) judge(*std::exchange(seen_meanwhile_, std::nullopt));
  if (is_changed_) schedule(is_urgent_ ? Urgency::kUrgent : Urgency::kUsual);
}

void Publisher::take_object(const json& object) {
  is_object_known_ = true;
  // The watch may tell of a write before the write is answered.
  if (is_busy_) {
    seen_meanwhile_ = object;
    is_changed_ = true;
    return;
  }
  judge(object);
  schedule(Urgency::kUsual);
}

/// Takes the object as it is now. If somebody else has changed what is ours, that is said, and it is written again, but
/// not as fast as the other one might do the same. True in that case.
bool Publisher::judge(const json& object) {
  const std::string version = text_field(object, "metadata", "resourceVersion");
  const bool is_own = std::find(own_versions_.begin(), own_versions_.end(), version) != own_versions_.end();
  // The watch may still tell of one that was written before the newest.
  if (is_own) return false;
  const bool was_there = current_.is_object();
  current_ = object;
  if (!object.is_object()) {
    if (was_there) note_deletion();
    return false;
  }
  // A write whose answer was lost.
  if (tell_the_same(last_sent_, object)) last_written_ = object;
  if (!last_written_.is_object() || tell_the_same(last_written_, object)) return false;
  ++counts_.other_writers;
  counts_.other_writer = last_writer(object);
  last_contest_ = deps_.api.now();
  not_before_ = std::max(not_before_, deps_.api.now() + kContestedPeriod);
  deps_.log.warn(
      "the NodeResourceTopology {} was changed by {}: two programs write it, and schedulers cannot rely on it; on this "
      "node, stop the other one, such as nfd-topology-updater or koordlet's",
      options_.node_name, counts_.other_writer);
  return true;
}

/// Whoever collects what belonged to a Node that is gone deletes it each time that it is written for that one.
void Publisher::note_deletion() {
  ++counts_.deletions;
  owner_.doubt();
  deps_.log.warn("the NodeResourceTopology {} was deleted, by somebody or with its Node; it is written again",
                 options_.node_name);
  const Time now = deps_.api.now();
  const bool is_again = now - std::exchange(last_deletion_, now) < kDeletionsMemory;
  deletions_in_a_row_ = is_again ? deletions_in_a_row_ + 1 : 1;
  if (deletions_in_a_row_ > kMaxDeletions) not_before_ = std::max(not_before_, now + kContestedPeriod);
}
}  // namespace topolet::agent
