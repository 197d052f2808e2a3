// The answers of a plugin as values, taken by sinks that refuse what a host refuses. See <topolet/testing.hpp>.
#pragma once

#include <topolet/codes.h>
#include <topolet/testing/request.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace topolet::sdk::testing {

using sdk::Verdict;

/// One at_least() of a pick.
struct Share {
  Set cpus;
  std::size_t count = 0;
};

struct Wish {
  std::uint32_t entry = 0;
  bool move_nodes = false;
  std::string reason;
  bool now = false;
};

struct Picked {
  bool narrowed = false;
  Set narrow, withhold;
  std::vector<Share> at_least;
  std::vector<std::uint32_t> order;
  std::string reason;
  std::string unmet;
  std::string rejected;
  std::string code = {};
  std::vector<Wish> replace = {};
  bool softened = false;
};

struct MemoryPolicy {
  std::int32_t mode = 0;
  Set nodes = {};
  std::uint32_t flags = 0;
};

struct Scheduler {
  std::int32_t scheduler_class = 0;
  std::int32_t nice = 0;
};

struct IoPriority {
  std::int32_t io_class = 0;
  std::int32_t priority = 0;
};

struct Adjusted {
  bool bound = false;
  Set mems;
  std::map<std::string, std::string> env, annotations;
  std::string reason;
  std::vector<std::string> used_devices = {};
  std::map<std::string, std::string> tags = {};  ///< by "ID/KEY"
  std::map<std::string, std::string> unified = {};
  std::string rdt_class = {};
  std::optional<MemoryPolicy> memory_policy = {};
  std::optional<Scheduler> scheduler = {};
  std::optional<IoPriority> io_priority = {};
};

namespace sinks {

/// The answer to one call, and the first thing that was wrong with it.
template <class T>
struct Answer {
  T value = {};
  std::string fault = {}, error = {};

  std::int32_t refuse(topolet_status status, std::string why) {
    if (fault.empty()) fault = std::move(why);
    return status;
  }
};

template <class T, class Sink>
void start(Sink& sink, Answer<T>& answer) {
  sink.struct_size = sizeof(sink);
  sink.context = &answer;
  sink.error = [](const Sink* to, topolet_str message) {
    static_cast<Answer<T>*>(to->context)->error = text(message);
    return std::int32_t{TOPOLET_OK};
  };
}

template <class A, class Sink>
A& answer_of(const Sink* sink) {
  return static_cast<A&>(*static_cast<Answer<decltype(A::value)>*>(sink->context));
}

template <class A, class Sink>
std::int32_t keep_reason(const Sink* sink, topolet_str reason) {
  answer_of<A>(sink).value.reason = text(reason);
  return TOPOLET_OK;
}

inline Set not_offered(topolet_set named, topolet_set offered) { return Set(named) - Set(offered); }

/// `codes`: those that the plugin has; null if it has none.
template <class T>
std::int32_t keep_code(Answer<T>& answer, const topolet_codes* codes, topolet_str code, std::string& place) {
  const std::size_t count = codes == nullptr ? 0 : codes->codes.count;
  const auto is_this = [code](const topolet_kv& own) { return text(own.key) == text(code); };
  if (count == 0 || std::none_of(codes->codes.items, codes->codes.items + count, is_this))
    return answer.refuse(TOPOLET_UNKNOWN, "the code " + std::string(text(code)) + ", which is none of its codes");
  if (!place.empty()) return answer.refuse(TOPOLET_DUPLICATE, "two codes for one answer");
  place = text(code);
  return TOPOLET_OK;
}

struct ScoreAnswer : Answer<std::vector<Verdict>> {
  std::vector<bool> seen;
  const topolet_codes* codes = nullptr;

  std::int32_t set(std::uint32_t candidate, std::int32_t kind, std::int32_t score, topolet_str reason) {
    const std::string on = " on candidate " + std::to_string(candidate);
    if (candidate >= value.size()) {
      return refuse(TOPOLET_UNKNOWN, "a verdict" + on + ", but there are " + std::to_string(value.size()));
    }
    if (seen[candidate]) return refuse(TOPOLET_DUPLICATE, "two verdicts" + on);
    if (kind < TOPOLET_VERDICT_ABSTAIN || kind > TOPOLET_VERDICT_SCORE) {
      return refuse(TOPOLET_INVALID, "a verdict of the unknown kind " + std::to_string(kind) + on);
    }
    if (kind == TOPOLET_VERDICT_SCORE && (score < TOPOLET_SCORE_MIN || score > TOPOLET_SCORE_MAX)) {
      return refuse(TOPOLET_OUT_OF_RANGE, "the score " + std::to_string(score) + on + ", beyond -100 to 100");
    }
    seen[candidate] = true;
    value[candidate] = {static_cast<topolet_verdict_kind>(kind), score, std::string(text(reason)),
                        std::move(value[candidate].code)};
    return TOPOLET_OK;
  }
  std::int32_t set_code(std::uint32_t candidate, topolet_str code) {
    if (candidate >= value.size()) return refuse(TOPOLET_UNKNOWN, "a code on a candidate that there is not");
    return keep_code(*this, codes, code, value[candidate].code);
  }
};

struct ProposeAnswer : Answer<std::vector<Set>> {
  std::int32_t add(topolet_set nodes) {
    if (Set(nodes).empty()) return refuse(TOPOLET_INVALID, "a proposal of no node");
    if (value.size() >= TOPOLET_PROPOSE_MAX_SETS) {
      return refuse(TOPOLET_OUT_OF_RANGE, "more than " + std::to_string(TOPOLET_PROPOSE_MAX_SETS) + " proposals");
    }
    value.emplace_back(nodes);
    return TOPOLET_OK;
  }
};

template <class T>
std::int32_t add_wish(Answer<T>& answer, const topolet_ledger& ledger, std::vector<Wish>& wishes, std::uint32_t entry,
                      std::uint32_t flags, topolet_str reason) {
  if ((flags & ~(TOPOLET_REPLACE_OTHER_NODES | TOPOLET_REPLACE_NOW)) != 0) return TOPOLET_UNSUPPORTED;
  const std::string on = " on entry " + std::to_string(entry);
  if (entry >= ledger.entry_count) {
    return answer.refuse(TOPOLET_UNKNOWN, "a wish" + on + ", but there are " + std::to_string(ledger.entry_count));
  }
  if (entries(ledger)[entry].mode == TOPOLET_MODE_FOREIGN)
    return answer.refuse(TOPOLET_UNKNOWN, "a wish" + on + ", which is not placed by the host");
  const auto is_this = [entry](const Wish& wish) { return wish.entry == entry; };
  if (std::any_of(wishes.begin(), wishes.end(), is_this)) return answer.refuse(TOPOLET_DUPLICATE, "two wishes" + on);
  wishes.push_back({entry, (flags & TOPOLET_REPLACE_OTHER_NODES) != 0, std::string(text(reason)),
                    (flags & TOPOLET_REPLACE_NOW) != 0});
  return TOPOLET_OK;
}

struct PickAnswer : Answer<Picked> {
  const topolet_ledger* ledger = nullptr;
  const topolet_codes* codes = nullptr;
  topolet_set usable = {};
  bool withheld = false, ordered = false;

  std::int32_t check(const char* what, bool said, topolet_set cpus) {
    if (said) return refuse(TOPOLET_DUPLICATE, std::string(what) + " said twice");
    const Set foreign = not_offered(cpus, usable);
    if (foreign.empty()) return TOPOLET_OK;
    return refuse(TOPOLET_OUT_OF_RANGE, std::string(what) + " of CPUs " + foreign.to_string() +
                                            ", which were not offered; offered were " + Set(usable).to_string());
  }
  std::int32_t set_narrow(topolet_set cpus) {
    if (size_of(cpus) == 0) return refuse(TOPOLET_INVALID, "narrow to no CPU");
    const std::int32_t status = check("narrow", std::exchange(value.narrowed, true), cpus);
    if (status == TOPOLET_OK) value.narrow = Set(cpus);
    return status;
  }
  std::int32_t set_withhold(topolet_set cpus) {
    const std::int32_t status = check("withhold", std::exchange(withheld, true), cpus);
    if (status == TOPOLET_OK) value.withhold = Set(cpus);
    return status;
  }
  std::int32_t set_order(const std::uint32_t* cpus, std::size_t count) {
    if (std::exchange(ordered, true)) return refuse(TOPOLET_DUPLICATE, "order said twice");
    value.order.assign(cpus, cpus + count);
    std::vector<std::uint32_t> sorted = value.order;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice == sorted.end()) return TOPOLET_OK;
    return refuse(TOPOLET_DUPLICATE, "order names CPU " + std::to_string(*twice) + " twice");
  }
  std::int32_t set_unmet(topolet_str what) {
    if (what.len == 0) return refuse(TOPOLET_INVALID, "something unmet without a word");
    value.unmet = text(what);
    return TOPOLET_OK;
  }
  std::int32_t add_share(topolet_set cpus, std::uint32_t count) {
    const std::int32_t status = check("at_least", value.at_least.size() >= TOPOLET_PICK_MAX_SHARES, cpus);
    if (status == TOPOLET_OK) value.at_least.push_back({Set(cpus), count});
    return status;
  }
  std::int32_t set_rejected(topolet_str reason) {
    if (reason.len == 0) return refuse(TOPOLET_INVALID, "rejected without a word");
    if (!value.rejected.empty()) return refuse(TOPOLET_DUPLICATE, "rejected twice");
    value.rejected = text(reason);
    return TOPOLET_OK;
  }
};

inline bool has_device(const topolet_topology& topology, std::string_view name) {
  for (const topolet_pci_device& device : pci_devices(topology)) {
    if (text(device.address) == name) return true;
  }
  for (const topolet_os_device& device : os_devices(topology)) {
    if (text(device.name) == name) return true;
  }
  return false;
}

/// True for annotations that are not a plugin's to set.
inline bool is_forbidden(std::string_view annotation) {
  if (annotation.starts_with("io.kubernetes.") || annotation.starts_with("cdi.k8s.io/")) return true;
  const std::size_t slash = annotation.find('/');
  const std::string_view domain = slash == std::string_view::npos ? "" : annotation.substr(0, slash);
  return domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
}

struct AdjustAnswer : Answer<Adjusted> {
  topolet_set memory = {};
  const topolet_topology* topology = nullptr;
  std::string plugin = {};
  bool sets_all = true;

  std::int32_t set_mems(topolet_set nodes) {
    if (std::exchange(value.bound, true)) return refuse(TOPOLET_DUPLICATE, "mems said twice");
    if (const Set foreign = not_offered(nodes, memory); !foreign.empty()) {
      return refuse(TOPOLET_OUT_OF_RANGE, "mems on nodes " + foreign.to_string() + ", which were not offered");
    }
    if (size_of(nodes) == 0) return refuse(TOPOLET_INVALID, "mems on no node");
    value.mems = Set(nodes);
    return TOPOLET_OK;
  }
  std::int32_t add(std::map<std::string, std::string>& fields, const char* noun, topolet_str key, topolet_str said) {
    const std::string name(text(key));
    if (name.empty()) return refuse(TOPOLET_INVALID, std::string(noun) + " without a name");
    if (key.len > TOPOLET_ADJUST_MAX_KEY || said.len > TOPOLET_ADJUST_MAX_VALUE) {
      return refuse(TOPOLET_OUT_OF_RANGE, std::string(noun) + " " + name + " is too long");
    }
    if (!fields.emplace(name, text(said)).second) {
      return refuse(TOPOLET_DUPLICATE, std::string(noun) + " " + name + " set twice");
    }
    const bool too_many = value.env.size() + value.annotations.size() > TOPOLET_ADJUST_MAX_FIELDS;
    return too_many ? refuse(TOPOLET_OUT_OF_RANGE, "too many fields") : std::int32_t{TOPOLET_OK};
  }
  std::int32_t add_used_device(topolet_str device) {
    std::string name(text(device));
    if (name.empty()) return refuse(TOPOLET_INVALID, "a device without a name");
    if (name.size() > TOPOLET_ADJUST_MAX_KEY || value.used_devices.size() >= TOPOLET_ADJUST_MAX_DEVICES)
      return refuse(TOPOLET_OUT_OF_RANGE, "device " + name + " is too long or one too many");
    const auto& known = value.used_devices;
    if (std::find(known.begin(), known.end(), name) != known.end())
      return refuse(TOPOLET_DUPLICATE, "device " + name + " said twice");
    if (!has_device(*topology, name)) return TOPOLET_UNKNOWN;
    value.used_devices.push_back(std::move(name));
    return TOPOLET_OK;
  }
  std::int32_t add_tag(topolet_str key, topolet_str said) {
    if (key.len == 0) return refuse(TOPOLET_INVALID, "a tag without a key");
    const std::string name = plugin + "/" + std::string(text(key));
    if (name.size() > TOPOLET_ADJUST_MAX_TAG || said.len > TOPOLET_ADJUST_MAX_TAG)
      return refuse(TOPOLET_OUT_OF_RANGE, "tag " + name + " is too long");
    if (!value.tags.emplace(name, text(said)).second) return refuse(TOPOLET_DUPLICATE, "tag " + name + " set twice");
    const bool too_many = value.tags.size() > TOPOLET_ADJUST_MAX_TAGS;
    return too_many ? refuse(TOPOLET_OUT_OF_RANGE, "too many tags") : std::int32_t{TOPOLET_OK};
  }
  std::int32_t add_file(topolet_str key, topolet_str said) {
    const std::string file(text(key));
    if (file != "memory.high") return TOPOLET_UNSUPPORTED;
    const std::string_view bytes = text(said);
    const bool is_number = !bytes.empty() && bytes.find_first_not_of("0123456789") == std::string_view::npos &&
                           bytes.find_first_not_of('0') != std::string_view::npos && bytes.size() < 19;
    if (bytes != "max" && !is_number) return refuse(TOPOLET_INVALID, file + " is neither bytes nor 'max'");
    if (!value.unified.emplace(file, bytes).second) return refuse(TOPOLET_DUPLICATE, file + " set twice");
    return TOPOLET_OK;
  }
  std::int32_t set_rdt_class(topolet_str name) {
    if (name.len == 0) return refuse(TOPOLET_INVALID, "an RDT class without a name");
    if (name.len > TOPOLET_ADJUST_MAX_KEY) return refuse(TOPOLET_OUT_OF_RANGE, "the name of an RDT class is too long");
    if (!value.rdt_class.empty()) return refuse(TOPOLET_DUPLICATE, "two RDT classes");
    value.rdt_class = text(name);
    return TOPOLET_OK;
  }
  std::int32_t set_memory_policy(std::int32_t mode, topolet_set nodes, std::uint32_t flags) {
    const std::uint32_t fixed = TOPOLET_MEMORY_STATIC_NODES | TOPOLET_MEMORY_RELATIVE_NODES;
    if (mode < TOPOLET_MEMORY_PREFERRED || mode > TOPOLET_MEMORY_WEIGHTED_INTERLEAVE) return TOPOLET_UNSUPPORTED;
    if ((flags & ~(fixed | TOPOLET_MEMORY_NUMA_BALANCING)) != 0) return TOPOLET_UNSUPPORTED;
    const Set named(nodes);
    if ((flags & TOPOLET_MEMORY_RELATIVE_NODES) == 0 && !not_offered(nodes, memory).empty())
      return refuse(TOPOLET_OUT_OF_RANGE, "a memory policy with a node that the machine does not have");
    const bool is_local = mode == TOPOLET_MEMORY_LOCAL;
    if (named.empty() != is_local || (mode == TOPOLET_MEMORY_PREFERRED && named.size() != 1))
      return refuse(TOPOLET_INVALID, "a memory policy with too few or too many nodes");
    const bool may_balance = mode == TOPOLET_MEMORY_BIND || mode == TOPOLET_MEMORY_PREFERRED_MANY;
    if ((flags & fixed) == fixed || (is_local && (flags & fixed) != 0) ||
        (!may_balance && (flags & TOPOLET_MEMORY_NUMA_BALANCING) != 0))
      return refuse(TOPOLET_INVALID, "a memory policy with flags that contradict each other or the mode");
    if (value.memory_policy) return refuse(TOPOLET_DUPLICATE, "two memory policies");
    if (!sets_all) return TOPOLET_UNSUPPORTED;
    value.memory_policy = {mode, named, flags};
    return TOPOLET_OK;
  }
  std::int32_t set_scheduler(std::int32_t scheduler_class, std::int32_t nice) {
    const bool is_idle = scheduler_class == TOPOLET_SCHEDULER_IDLE;
    if (scheduler_class != TOPOLET_SCHEDULER_OTHER && scheduler_class != TOPOLET_SCHEDULER_BATCH && !is_idle)
      return TOPOLET_UNSUPPORTED;
    if (nice < TOPOLET_NICE_MIN || nice > TOPOLET_NICE_MAX || (is_idle && nice != 0))
      return refuse(TOPOLET_OUT_OF_RANGE, "nice " + std::to_string(nice));
    if (value.scheduler) return refuse(TOPOLET_DUPLICATE, "two schedulers");
    if (!sets_all) return TOPOLET_UNSUPPORTED;
    value.scheduler = {scheduler_class, nice};
    return TOPOLET_OK;
  }
  std::int32_t set_io_priority(std::int32_t io_class, std::int32_t priority) {
    if (io_class < TOPOLET_IO_REALTIME || io_class > TOPOLET_IO_IDLE) return TOPOLET_UNSUPPORTED;
    if (priority < 0 || priority > (io_class == TOPOLET_IO_IDLE ? 0 : TOPOLET_IO_PRIORITY_MAX))
      return refuse(TOPOLET_OUT_OF_RANGE, "I/O priority " + std::to_string(priority));
    if (value.io_priority) return refuse(TOPOLET_DUPLICATE, "two I/O priorities");
    if (!sets_all) return TOPOLET_UNSUPPORTED;
    value.io_priority = {io_class, priority};
    return TOPOLET_OK;
  }
  std::int32_t add_annotation(topolet_str key, topolet_str said) {
    const std::string_view name = text(key);
    if (is_forbidden(name))
      return refuse(TOPOLET_FORBIDDEN, "annotation " + std::string(name) + " is not a plugin's to set");
    return add(value.annotations, "annotation", key, said);
  }
  std::int32_t add_env(topolet_str name, topolet_str said) {
    const auto has = [](topolet_str in, char byte) { return text(in).find(byte) != std::string_view::npos; };
    if (has(name, '=') || has(name, '\0') || has(said, '\0')) {
      return refuse(TOPOLET_INVALID, "a variable with '=' in its name or a zero byte");
    }
    return add(value.env, "variable", name, said);
  }
};

struct TickAnswer : Answer<std::vector<Wish>> {
  const topolet_ledger* ledger = nullptr;

  std::int32_t replace(std::uint32_t entry, std::uint32_t flags, topolet_str reason) {
    return add_wish(*this, *ledger, value, entry, flags, reason);
  }
};

inline topolet_score_sink sink_into(ScoreAnswer& answer) {
  topolet_score_sink sink{};
  start<std::vector<Verdict>>(sink, answer);
  sink.set = [](const topolet_score_sink* to, std::uint32_t candidate, std::int32_t kind, std::int32_t score,
                topolet_str reason) { return answer_of<ScoreAnswer>(to).set(candidate, kind, score, reason); };
  sink.code = [](const topolet_score_sink* to, std::uint32_t candidate, topolet_str code) {
    return answer_of<ScoreAnswer>(to).set_code(candidate, code);
  };
  return sink;
}

inline topolet_propose_sink sink_into(ProposeAnswer& answer) {
  topolet_propose_sink sink{};
  start<std::vector<Set>>(sink, answer);
  sink.nodes = [](const topolet_propose_sink* to, topolet_set nodes) {
    return answer_of<ProposeAnswer>(to).add(nodes);
  };
  return sink;
}

inline topolet_pick_sink sink_into(PickAnswer& answer) {
  topolet_pick_sink sink{};
  start<Picked>(sink, answer);
  sink.narrow = [](const topolet_pick_sink* to, topolet_set cpus) {
    return answer_of<PickAnswer>(to).set_narrow(cpus);
  };
  sink.withhold = [](const topolet_pick_sink* to, topolet_set cpus) {
    return answer_of<PickAnswer>(to).set_withhold(cpus);
  };
  sink.order = [](const topolet_pick_sink* to, const std::uint32_t* cpus, std::size_t count) {
    return answer_of<PickAnswer>(to).set_order(cpus, count);
  };
  sink.reason = &keep_reason<PickAnswer, topolet_pick_sink>;
  sink.unmet = [](const topolet_pick_sink* to, topolet_str what) { return answer_of<PickAnswer>(to).set_unmet(what); };
  sink.at_least = [](const topolet_pick_sink* to, topolet_set cpus, std::uint32_t count) {
    return answer_of<PickAnswer>(to).add_share(cpus, count);
  };
  sink.reject = [](const topolet_pick_sink* to, topolet_str reason) {
    return answer_of<PickAnswer>(to).set_rejected(reason);
  };
  sink.code = [](const topolet_pick_sink* to, topolet_str code) {
    PickAnswer& its = answer_of<PickAnswer>(to);
    return keep_code(its, its.codes, code, its.value.code);
  };
  sink.replace = [](const topolet_pick_sink* to, std::uint32_t entry, std::uint32_t flags, topolet_str reason) {
    PickAnswer& its = answer_of<PickAnswer>(to);
    return add_wish(its, *its.ledger, its.value.replace, entry, flags, reason);
  };
  sink.soften = [](const topolet_pick_sink* to) -> std::int32_t {
    answer_of<PickAnswer>(to).value.softened = true;
    return TOPOLET_OK;
  };
  return sink;
}

inline topolet_adjust_sink sink_into(AdjustAnswer& answer) {
  topolet_adjust_sink sink{};
  start<Adjusted>(sink, answer);
  sink.mems = [](const topolet_adjust_sink* to, topolet_set nodes) {
    return answer_of<AdjustAnswer>(to).set_mems(nodes);
  };
  sink.env = [](const topolet_adjust_sink* to, topolet_str name, topolet_str value) {
    return answer_of<AdjustAnswer>(to).add_env(name, value);
  };
  sink.annotation = [](const topolet_adjust_sink* to, topolet_str key, topolet_str value) {
    return answer_of<AdjustAnswer>(to).add_annotation(key, value);
  };
  sink.reason = &keep_reason<AdjustAnswer, topolet_adjust_sink>;
  sink.uses = [](const topolet_adjust_sink* to, topolet_str device) {
    return answer_of<AdjustAnswer>(to).add_used_device(device);
  };
  sink.tag = [](const topolet_adjust_sink* to, topolet_str key, topolet_str value) {
    return answer_of<AdjustAnswer>(to).add_tag(key, value);
  };
  sink.unified = [](const topolet_adjust_sink* to, topolet_str key, topolet_str value) {
    return answer_of<AdjustAnswer>(to).add_file(key, value);
  };
  sink.rdt_class = [](const topolet_adjust_sink* to, topolet_str name) {
    return answer_of<AdjustAnswer>(to).set_rdt_class(name);
  };
  sink.memory_policy = [](const topolet_adjust_sink* to, std::int32_t mode, topolet_set nodes, std::uint32_t flags) {
    return answer_of<AdjustAnswer>(to).set_memory_policy(mode, nodes, flags);
  };
  sink.scheduler = [](const topolet_adjust_sink* to, std::int32_t scheduler_class, std::int32_t nice) {
    return answer_of<AdjustAnswer>(to).set_scheduler(scheduler_class, nice);
  };
  sink.io_priority = [](const topolet_adjust_sink* to, std::int32_t io_class, std::int32_t priority) {
    return answer_of<AdjustAnswer>(to).set_io_priority(io_class, priority);
  };
  return sink;
}

inline topolet_tick_sink sink_into(TickAnswer& answer) {
  topolet_tick_sink sink{};
  start<std::vector<Wish>>(sink, answer);
  sink.replace = [](const topolet_tick_sink* to, std::uint32_t entry, std::uint32_t flags, topolet_str reason) {
    return answer_of<TickAnswer>(to).replace(entry, flags, reason);
  };
  return sink;
}

inline topolet_event_sink sink_into(Answer<bool>& answer) {
  topolet_event_sink sink{};
  start<bool>(sink, answer);
  return sink;
}

}  // namespace sinks

}  // namespace topolet::sdk::testing
