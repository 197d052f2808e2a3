// A running instance of a plugin, on a fake host. See <topolet/testing.hpp>.
#pragma once

#include <topolet/wake.h>
#include <topolet/testing/answers.hpp>
#include <topolet/testing/option_values.hpp>
#include <topolet/testing/request.hpp>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace topolet::sdk::testing {

/// A host that records what the plugin logs, saves, and wants to be woken for. The plugin's own threads may log and
/// want ticks, too; what the test reads here meanwhile must not be written by them.
class FakeHost {
 public:
  std::vector<std::string> log;              ///< lines, without the level
  std::map<std::string, std::string> state;  ///< as it would be saved

  FakeHost() {
    view_.struct_size = sizeof(view_);
    view_.abi_minor = TOPOLET_ABI_MINOR;
    view_.name = borrow("testing");
    view_.context = this;
    view_.get_capability = [](const topolet_host* host, topolet_str id) -> const void* {
      if (topolet_str_is(id, TOPOLET_LOG_ID)) return &of(host).log_;
      if (topolet_str_is(id, TOPOLET_WAKE_ID)) return &of(host).wake_;
      return topolet_str_is(id, TOPOLET_STATE_ID) ? &of(host).state_ : nullptr;
    };
  }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  const topolet_host* view() const { return &view_; }

  /// How often a tick was wanted (topolet.wake/1). The test makes it with Plugin::tick().
  std::size_t wanted_ticks() const {
    const std::lock_guard lock(mutex_);
    return wanted_ticks_;
  }
  /// Waits until a tick has been wanted so often in all. False if it was not within `limit`, which should be far more
  /// than the plugin needs.
  bool wait_for_wanted_ticks(std::size_t count, std::chrono::seconds limit = std::chrono::seconds(60)) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return wanted_ticks_ >= count; });
  }

 private:
  friend class Plugin;
  static FakeHost& of(const topolet_host* host) { return *static_cast<FakeHost*>(host->context); }

  static std::int32_t give(const std::string& bytes, void* buffer, std::size_t capacity, std::size_t* size) {
    *size = bytes.size();
    if (bytes.size() > capacity) return TOPOLET_OUT_OF_RANGE;
    if (!bytes.empty()) std::memcpy(buffer, bytes.data(), bytes.size());
    return TOPOLET_OK;
  }
  static std::int32_t check(topolet_str key, std::size_t value_size) {
    if (key.len == 0) return TOPOLET_INVALID;
    return key.len > TOPOLET_STATE_MAX_KEY || value_size > TOPOLET_STATE_MAX_VALUE ? TOPOLET_OUT_OF_RANGE : TOPOLET_OK;
  }
  static void write_log(const topolet_host* host, std::int32_t, topolet_str message) {
    const std::lock_guard lock(of(host).mutex_);
    of(host).log.emplace_back(text(message));
  }
  static std::int32_t tick_soon(const topolet_host* host) {
    const std::lock_guard lock(of(host).mutex_);
    ++of(host).wanted_ticks_;
    of(host).changed_.notify_all();
    return TOPOLET_OK;
  }
  static std::int32_t get(const topolet_host* host, topolet_str key, void* buffer, std::size_t capacity,
                          std::size_t* size) {
    const auto found = of(host).state.find(std::string(text(key)));
    return found == of(host).state.end() ? TOPOLET_UNKNOWN : give(found->second, buffer, capacity, size);
  }
  static std::int32_t next(const topolet_host* host, topolet_str after, void* buffer, std::size_t capacity,
                           std::size_t* size) {
    const auto found = of(host).state.upper_bound(std::string(text(after)));
    return found == of(host).state.end() ? TOPOLET_UNKNOWN : give(found->first, buffer, capacity, size);
  }
  static std::int32_t set(const topolet_host* host, topolet_str key, topolet_str value) {
    if (!of(host).may_write_) return TOPOLET_FORBIDDEN;
    const std::int32_t status = check(key, value.len);
    if (status == TOPOLET_OK) of(host).state[std::string(text(key))] = text(value);
    return status;
  }
  static std::int32_t remove(const topolet_host* host, topolet_str key) {
    if (!of(host).may_write_) return TOPOLET_FORBIDDEN;
    of(host).state.erase(std::string(text(key)));
    return check(key, 0);
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::size_t wanted_ticks_ = 0;
  bool may_write_ = false;
  topolet_log log_{sizeof(topolet_log), 0, &write_log};
  topolet_state state_{sizeof(topolet_state), 0, &get, &next, &set, &remove};
  topolet_wake wake_{sizeof(topolet_wake), 0, &tick_soon};
  topolet_host view_{};
};

/// What a plugin is told when it is created, besides its options.
struct Creation {
  topolet_purpose purpose = TOPOLET_PURPOSE_RUN;
  const Machine* machine = nullptr;  ///< null: not known
  std::uint32_t deadline_ms = 0;
};

/// Something that happened to a container.
struct Event {
  topolet_event_kind kind = TOPOLET_EVENT_PLACED;
  Set cpus = {}, withheld = {}, mems = {};
  topolet_mode mode = TOPOLET_MODE_EXCLUSIVE;
  std::uint32_t flags = 0;  ///< TOPOLET_EVENT_…
  std::string reason = {};
  std::int32_t exit_code = 0;
};

/// A running instance of a plugin, created from its entry: topolet_plugin_v1 if the plugin is linked into the test.
/// Where the plugin throws, fails or gives an answer that a host would refuse, the call throws std::runtime_error and
/// says why.
class Plugin {
 public:
  using Values = std::vector<std::pair<std::string, std::string>>;

  /// Options that `values` leaves out have their defaults; one that may be repeated may be in it more than once. Values
  /// are written as in the configuration ("1m30s", "64Mi"), and the plugin is given their plain form; see
  /// plain_value(). `others` are other keys of the configuration, by "SECTION.KEY". `host` must outlive the plugin.
  Plugin(const topolet_plugin_entry& entry, FakeHost& host, const Values& values = {}, const Values& others = {},
         const Creation& creation = {})
      : host_(host), id_(text(entry.id)) {
    std::vector<topolet_kv> options;
    std::deque<std::string> plain;
    const auto given = [&plain](const topolet_option& option, std::string_view value) {
      return borrow(plain.emplace_back(plain_value(option, value)));
    };
    std::size_t used = 0;
    for (const topolet_option& option : Array<topolet_option>(entry.options, entry.option_count, entry.option_stride)) {
      const bool is_repeated = (option.flags & TOPOLET_OPTION_REPEATED) != 0;
      bool is_set = false;
      for (const auto& [name, value] : values) {
        if (name != text(option.name)) continue;
        if (!is_set || is_repeated) options.push_back({option.name, {}});
        options.back().value = given(option, value);
        is_set = true;
        ++used;
      }
      if (!is_set && !is_repeated) options.push_back({option.name, given(option, text(option.default_value))});
    }
    if (used != values.size())
      throw std::invalid_argument("a value is given for an option that is not in the plugin's table");
    std::vector<topolet_kv> of_others;
    for (const auto& [name, value] : others) of_others.push_back({borrow(name), borrow(value)});
    const topolet_create_request request{sizeof(request),
                                         creation.purpose,
                                         host.view(),
                                         {options.data(), options.size()},
                                         {of_others.data(), of_others.size()},
                                         creation.machine == nullptr ? nullptr : &creation.machine->view(),
                                         creation.deadline_ms,
                                         0};
    std::string why = "no reason given";
    const topolet_error_sink sink{sizeof(sink), 0, &why, [](const topolet_error_sink* to, topolet_str message) {
                                    *static_cast<std::string*>(to->context) = text(message);
                                    return std::int32_t{TOPOLET_OK};
                                  }};
    host_.may_write_ = true;
    const std::int32_t status = entry.create(&request, &sink, &instance_);
    host_.may_write_ = false;
    if (status != TOPOLET_OK) throw std::runtime_error("create failed: " + why);
  }
  ~Plugin() { instance_->destroy(instance_); }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  /// The codes that it has for its reasons; null if it has none.
  const topolet_codes* codes() const {
    return static_cast<const topolet_codes*>(instance_->get_capability(instance_, borrow(TOPOLET_CODES_ID)));
  }
  bool has(std::string_view id) const { return instance_->get_capability(instance_, borrow(id)) != nullptr; }

  /// The annotations that the plugin says it reads.
  std::vector<std::string> annotations() const {
    const topolet_strs names = capability<topolet_annotations>(TOPOLET_ANNOTATIONS_ID).names;
    std::vector<std::string> copies;
    for (std::size_t i = 0; i < names.count; ++i) copies.emplace_back(text(names.items[i]));
    return copies;
  }

  /// Those of them that it says take more from others than a container requests, as NAME or NAME = VALUE.
  std::vector<std::string> taking_annotations() const {
    const topolet_kvs taking = capability<topolet_annotations>(TOPOLET_ANNOTATIONS_ID).taking;
    std::vector<std::string> copies;
    for (std::size_t i = 0; i < taking.count; ++i) {
      const std::string value(text(taking.items[i].value));
      copies.push_back(std::string(text(taking.items[i].key)) + (value.empty() ? "" : " = " + value));
    }
    return copies;
  }

  /// One verdict for each candidate.
  std::vector<Verdict> score(const Request& request) {
    sinks::ScoreAnswer answer;
    answer.codes = codes();
    answer.value.resize(request.view().candidate_count);
    answer.seen.resize(answer.value.size());
    const topolet_score_sink sink = sinks::sink_into(answer);
    const auto& score = capability<topolet_score>(TOPOLET_SCORE_ID);
    return finish(answer, score.score(instance_, &request.view(), &sink));
  }

  /// The node sets that the plugin adds to the candidates. Hosts ask only on machines with more than 8 nodes.
  std::vector<Set> propose(const Request& request) {
    sinks::ProposeAnswer answer;
    const topolet_propose_sink sink = sinks::sink_into(answer);
    const auto& propose = capability<topolet_propose>(TOPOLET_PROPOSE_ID);
    return finish(answer, propose.propose(instance_, &request.view(), &sink));
  }

  /// Without `chosen`, asks which CPUs to use. With it, the CPUs that the container is going to get, asks what to
  /// withhold beside them.
  Picked pick(const Request& request, std::size_t candidate, const Set& chosen = {}) {
    return pick_at(chosen.empty() ? TOPOLET_PICK_CHOOSE : TOPOLET_PICK_REVIEW, request, candidate, chosen);
  }

  /// Asks for the order in which to take CPUs. A host asks for exclusive containers only.
  Picked order(const Request& request, std::size_t candidate) {
    return pick_at(TOPOLET_PICK_ORDER, request, candidate, {});
  }

  Picked pick_at(topolet_pick_stage stage, const Request& request, std::size_t candidate, const Set& chosen) {
    sinks::PickAnswer answer;
    answer.ledger = request.view().ledger;
    answer.codes = codes();
    answer.usable = candidates(request.view())[candidate].usable;
    const topolet_pick_sink sink = sinks::sink_into(answer);
    const topolet_pick_request asked{sizeof(asked),
                                     static_cast<std::uint32_t>(candidate),
                                     &request.view(),
                                     candidates(request.view())[candidate].usable,
                                     chosen.view(),
                                     request.view().exclusive_cpus,
                                     stage};
    return finish(answer, capability<topolet_pick>(TOPOLET_PICK_ID).pick(instance_, &asked, &sink));
  }

  /// False: adjust() is answered as by a host with daemon.front = cri, which sets no memory policy, scheduler class and
  /// I/O priority.
  bool is_front_nri = true;

  /// `cpus` are those that were chosen for the container.
  Adjusted adjust(const Request& request, std::size_t candidate, const Set& cpus,
                  topolet_asks asks = TOPOLET_ASKS_CREATE) {
    sinks::AdjustAnswer answer;
    const topolet_adjust_sink sink = sinks::sink_into(answer);
    Set memory;
    for (const topolet_node& node : nodes(*request.view().topology)) memory.insert(node.os_index);
    answer.memory = memory.view();
    answer.topology = request.view().topology;
    answer.plugin = id_;
    answer.sets_all = is_front_nri;
    const topolet_adjust_request asked{sizeof(asked),
                                       static_cast<std::uint32_t>(candidate),
                                       &request.view(),
                                       request.view().mode,
                                       asks,
                                       cpus.view(),
                                       {nullptr, 0},
                                       memory.view()};
    return finish(answer, capability<topolet_adjust>(TOPOLET_ADJUST_ID).adjust(instance_, &asked, &sink));
  }

  void notify(topolet_event_kind kind, const Machine& machine, const Container& container, const Set& cpus,
              const Set& withheld = {}) {
    notify({.kind = kind, .cpus = cpus, .withheld = withheld}, machine, container);
  }

  /// Events are numbered from 1.
  void notify(const Event& happened, const Machine& machine, const Container& container) {
    Container shown = container;
    shown.env.clear();
    const Workload workload(shown);
    sinks::Answer<bool> answer;
    const topolet_event_sink sink = sinks::sink_into(answer);
    const topolet_event event{sizeof(event),
                              happened.kind,
                              &workload.view(),
                              happened.mode,
                              happened.flags,
                              happened.cpus.view(),
                              happened.withheld.view(),
                              happened.mems.view(),
                              &machine.view(),
                              ++events_,
                              workload.view().container_id,
                              borrow(happened.reason),
                              happened.exit_code,
                              0};
    host_.may_write_ = true;
    const std::int32_t status = capability<topolet_events>(TOPOLET_EVENTS_ID).notify(instance_, &event, &sink);
    host_.may_write_ = false;
    finish(answer, status);
  }

  /// `load`: what is measured, or null. `unix_ms`: of the wall clock.
  std::vector<Wish> tick(const Machine& machine, const Ledger& ledger, std::uint64_t now_ms,
                         const topolet_load* load = nullptr, std::int64_t unix_ms = 0) {
    sinks::TickAnswer answer;
    answer.ledger = &ledger.view();
    const topolet_tick_sink sink = sinks::sink_into(answer);
    const topolet_tick_request request{sizeof(request), 0, now_ms, &machine.view(), &ledger.view(), load, unix_ms};
    host_.may_write_ = true;
    const std::int32_t status = capability<topolet_tick>(TOPOLET_TICK_ID).tick(instance_, &request, &sink);
    host_.may_write_ = false;
    return finish(answer, status);
  }

 private:
  template <class Capability>
  const Capability& capability(std::string_view id) const {
    const void* found = instance_->get_capability(instance_, borrow(id));
    if (found == nullptr) throw std::logic_error("the plugin does not have the capability " + std::string(id));
    return *static_cast<const Capability*>(found);
  }

  template <class T>
  static T finish(sinks::Answer<T>& answer, std::int32_t status) {
    if (!answer.fault.empty()) throw std::runtime_error("an answer that makes no sense: " + answer.fault);
    if (status != TOPOLET_OK) throw std::runtime_error("status " + std::to_string(status) + ": " + answer.error);
    return std::move(answer.value);
  }

  FakeHost& host_;
  const std::string id_;
  const topolet_instance* instance_ = nullptr;
  std::uint64_t events_ = 0;
};

}  // namespace topolet::sdk::testing
