// The sinks that take a policy's answers, and the host that a policy may ask. See <topolet/policy.hpp>.
#pragma once

#include <topolet/adjust.h>
#include <topolet/log.h>
#include <topolet/pick.h>
#include <topolet/propose.h>
#include <topolet/score.h>
#include <topolet/state.h>
#include <topolet/tick.h>
#include <topolet/wake.h>
#include <topolet/policy/views.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace topolet::sdk {

/// A policy's opinion on one candidate. An abstention without a reason is not recorded.
struct Verdict {
  topolet_verdict_kind kind = TOPOLET_VERDICT_ABSTAIN;
  std::int32_t score = 0;  ///< TOPOLET_SCORE_MIN to TOPOLET_SCORE_MAX; counts for TOPOLET_VERDICT_SCORE only
  std::string reason = {};
  std::string code = {};  ///< one of the policy's kCodes, or none
};

/// Takes the answer of score(). The policy abstains on every candidate that it gives no verdict for.
class Scores {
 public:
  explicit Scores(const topolet_score_sink& sink) : sink_(sink) {}
  void score(std::size_t candidate, std::int32_t score, std::string_view reason) {
    sink_.set(&sink_, static_cast<std::uint32_t>(candidate), TOPOLET_VERDICT_SCORE, score, borrow(reason));
  }
  /// No opinion, and the reason why.
  void abstain(std::size_t candidate, std::string_view reason) {
    sink_.set(&sink_, static_cast<std::uint32_t>(candidate), TOPOLET_VERDICT_ABSTAIN, 0, borrow(reason));
  }
  void reject(std::size_t candidate, std::string_view reason) {
    sink_.set(&sink_, static_cast<std::uint32_t>(candidate), TOPOLET_VERDICT_REJECT, 0, borrow(reason));
  }
  /// Says by which of the policy's kCodes the candidate has its verdict. A host that does not know codes is not told.
  void code(std::size_t candidate, std::string_view code) {
    if (TOPOLET_HAS(&sink_, code)) sink_.code(&sink_, static_cast<std::uint32_t>(candidate), borrow(code));
  }
  /// All verdicts at once, by position of the candidates. Candidates beyond the last verdict get none.
  void give(const std::vector<Verdict>& verdicts) {
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      const Verdict& verdict = verdicts[i];
      if (verdict.kind == TOPOLET_VERDICT_ABSTAIN && verdict.reason.empty()) continue;
      sink_.set(&sink_, static_cast<std::uint32_t>(i), verdict.kind, verdict.score, borrow(verdict.reason));
      if (!verdict.code.empty()) code(i, verdict.code);
    }
  }

 private:
  const topolet_score_sink& sink_;
};

/// Takes the answer of propose(). Without a call nothing is proposed.
class Proposals {
 public:
  explicit Proposals(const topolet_propose_sink& sink) : sink_(sink) {}
  /// Nodes by OS index. At most TOPOLET_PROPOSE_MAX_SETS sets.
  void nodes(topolet_set nodes) { sink_.nodes(&sink_, nodes); }

 private:
  const topolet_propose_sink& sink_;
};

/// Takes the answer of pick(). Without a call the policy has no preference.
class Picks {
 public:
  explicit Picks(const topolet_pick_sink& sink) : sink_(sink) {}
  void narrow(topolet_set cpus) { sink_.narrow(&sink_, cpus); }
  void withhold(topolet_set cpus) { sink_.withhold(&sink_, cpus); }
  void order(const std::vector<std::uint32_t>& os_indices) {
    sink_.order(&sink_, os_indices.data(), os_indices.size());
  }
  void reason(std::string_view why) { sink_.reason(&sink_, borrow(why)); }
  /// Reports a goal of this policy that cannot be met here.
  void unmet(std::string_view what) { sink_.unmet(&sink_, borrow(what)); }
  /// Take at least `count` of these CPUs, or as many as there are. May be called several times; earlier calls come
  /// first.
  void at_least(topolet_set cpus, std::size_t count) {
    sink_.at_least(&sink_, cpus, static_cast<std::uint32_t>(count));
  }
  /// Rejects the chosen CPUs.
  void reject(std::string_view reason) { sink_.reject(&sink_, borrow(reason)); }
  /// Asks for a container of the ledger that shares CPUs to be placed anew with this decision, once the CPUs are
  /// chosen. `flags`: TOPOLET_REPLACE_OTHER_NODES or 0. A host that does not know this function is not asked.
  void replace(std::size_t entry, std::uint32_t flags, std::string_view reason) {
    if (TOPOLET_HAS(&sink_, replace)) sink_.replace(&sink_, static_cast<std::uint32_t>(entry), flags, borrow(reason));
  }
  /// Says by which of the policy's kCodes it answers so. A host that does not know codes is not told.
  void code(std::string_view code) {
    if (TOPOLET_HAS(&sink_, code)) sink_.code(&sink_, borrow(code));
  }
  /// Lets a container that shares CPUs run on other nodes' CPUs as well, while those are to spare. A host that does not
  /// know this function is not told.
  void soften() {
    if (TOPOLET_HAS(&sink_, soften)) sink_.soften(&sink_);
  }

 private:
  const topolet_pick_sink& sink_;
};

/// Takes the answer of adjust(). Without a call the container stays as it is.
class Adjustments {
 public:
  explicit Adjustments(const topolet_adjust_sink& sink) : sink_(sink) {}
  void mems(topolet_set nodes) { sink_.mems(&sink_, nodes); }
  void env(std::string_view name, std::string_view value) { sink_.env(&sink_, borrow(name), borrow(value)); }
  void annotation(std::string_view key, std::string_view value) {
    sink_.annotation(&sink_, borrow(key), borrow(value));
  }
  void reason(std::string_view why) { sink_.reason(&sink_, borrow(why)); }
  /// Notes a value for the container, shown to all plugins as "ID/`key`". Those that are set in one call take the place
  /// of all that this plugin has set before.
  void tag(std::string_view key, std::string_view value) { sink_.tag(&sink_, borrow(key), borrow(value)); }
  /// Sets a file of the container's cgroup. Returns a topolet_status: TOPOLET_UNSUPPORTED for all but "memory.high".
  std::int32_t unified(std::string_view file, std::string_view value) {
    return TOPOLET_HAS(&sink_, unified) ? sink_.unified(&sink_, borrow(file), borrow(value)) : TOPOLET_UNSUPPORTED;
  }
  /// Puts the container into a class of Intel's Resource Director Technology.
  void rdt_class(std::string_view name) {
    if (TOPOLET_HAS(&sink_, rdt_class)) sink_.rdt_class(&sink_, borrow(name));
  }
  /// Sets where the kernel takes the container's memory from. `flags`: any of TOPOLET_MEMORY_…. Returns a
  /// topolet_status, as the next two do: TOPOLET_UNSUPPORTED where the front end, the runtime or the kernel has no such
  /// thing.
  std::int32_t memory_policy(topolet_memory_mode mode, topolet_set nodes, std::uint32_t flags = 0) {
    return TOPOLET_HAS(&sink_, memory_policy) ? sink_.memory_policy(&sink_, mode, nodes, flags) : TOPOLET_UNSUPPORTED;
  }
  std::int32_t scheduler(topolet_scheduler_class scheduler_class, std::int32_t nice) {
    return TOPOLET_HAS(&sink_, scheduler) ? sink_.scheduler(&sink_, scheduler_class, nice) : TOPOLET_UNSUPPORTED;
  }
  /// `priority`: 0, the first to be served, to 7.
  std::int32_t io_priority(topolet_io_class io_class, std::int32_t priority) {
    return TOPOLET_HAS(&sink_, io_priority) ? sink_.io_priority(&sink_, io_class, priority) : TOPOLET_UNSUPPORTED;
  }
  /// By PCI address or, without one, the name of the OS device; others than the topology's are not kept.
  void uses(std::string_view device) { sink_.uses(&sink_, borrow(device)); }

 private:
  const topolet_adjust_sink& sink_;
};

/// Takes the requests of tick() to place containers again.
class Wishes {
 public:
  explicit Wishes(const topolet_tick_sink& sink) : sink_(sink) {}
  /// `entry` is a position in the ledger's entries. The container stays on the nodes it is on.
  void replace(std::size_t entry, std::string_view reason) { ask(entry, 0, reason); }
  void replace_on_other_nodes(std::size_t entry, std::string_view reason) {
    ask(entry, TOPOLET_REPLACE_OTHER_NODES, reason);
  }
  /// `flags`: any of TOPOLET_REPLACE_….
  void replace(std::size_t entry, std::uint32_t flags, std::string_view reason) { ask(entry, flags, reason); }

 private:
  void ask(std::size_t entry, std::uint32_t flags, std::string_view reason) {
    sink_.replace(&sink_, static_cast<std::uint32_t>(entry), flags, borrow(reason));
  }
  const topolet_tick_sink& sink_;
};

/// What the host offers a policy, from its constructor to its destructor: the log and saved state. A small value that
/// may be copied and kept.
class Host {
 public:
  explicit Host(const topolet_host* host)
      : host_(host),
        log_(capability<topolet_log>(TOPOLET_LOG_ID)),
        state_(capability<topolet_state>(TOPOLET_STATE_ID)),
        wake_(capability<topolet_wake>(TOPOLET_WAKE_ID)) {}

  void log(topolet_log_level level, std::string_view message) const {
    if (log_ != nullptr) log_->write(host_, level, borrow(message));
  }

  /// Asks for tick() to be called soon, however long its interval is. Returns a topolet_status, TOPOLET_FAILED if the
  /// host has no topolet.wake/1. From any thread, as long as the instance lives.
  std::int32_t tick_soon() const { return wake_ == nullptr ? TOPOLET_FAILED : wake_->tick_soon(host_); }
  /// Which of topolet's programs it is, such as "topoletd" or "topolet simulate", and of which version.
  std::string_view program() const { return host_ == nullptr ? std::string_view() : text(host_->name); }
  std::string_view version() const { return host_ == nullptr ? std::string_view() : text(host_->version); }

  /// A saved value; nothing if there is none or the host keeps no state.
  std::optional<std::string> get(std::string_view key) const {
    return state_ == nullptr ? std::nullopt : read(state_->get, key, TOPOLET_STATE_MAX_VALUE);
  }
  /// All keys, ascending.
  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    if (state_ == nullptr) return all;
    while (auto key = read(state_->next, all.empty() ? std::string_view() : all.back(), TOPOLET_STATE_MAX_KEY)) {
      all.push_back(*std::move(key));
    }
    return all;
  }
  /// set() and remove() may be called from the constructor, notify() and tick() only. They return a topolet_status,
  /// TOPOLET_FAILED if the host keeps no state.
  std::int32_t set(std::string_view key, std::string_view value) const {
    return state_ == nullptr ? TOPOLET_FAILED : state_->set(host_, borrow(key), borrow(value));
  }
  std::int32_t remove(std::string_view key) const {
    return state_ == nullptr ? TOPOLET_FAILED : state_->remove(host_, borrow(key));
  }

 private:
  template <class Capability>
  const Capability* capability(std::string_view id) const {
    return host_ == nullptr ? nullptr : static_cast<const Capability*>(host_->get_capability(host_, borrow(id)));
  }

  template <class Read>
  std::optional<std::string> read(Read read_it, std::string_view key, std::size_t capacity) const {
    std::string bytes(capacity, '\0');
    std::size_t size = 0;
    if (read_it(host_, borrow(key), bytes.data(), capacity, &size) != TOPOLET_OK) return std::nullopt;
    bytes.resize(size);
    return bytes;
  }

  const topolet_host* host_;
  const topolet_log* log_;
  const topolet_state* state_;
  const topolet_wake* wake_;
};

}  // namespace topolet::sdk
