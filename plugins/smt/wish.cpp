#include "plugins/smt/wish.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>

namespace topolet::smt {
namespace {

constexpr std::string_view kSmt = "smt";
constexpr std::string_view kCpuProfile = "cpu-profile";
constexpr std::size_t kShownBytes = 64;

/// What a pod wrote, fit for a line of a log.
std::string shown(std::string_view value) {
  std::string text(value.substr(0, kShownBytes));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return value.size() > kShownBytes ? text + "..." : text;
}

/// Empty if there is no such annotation or it is one of `allowed`.
std::string bad(topolet_kvs settings, std::string_view name, std::initializer_list<std::string_view> allowed) {
  const bool is_set = std::any_of(settings.items, settings.items + settings.count,
                                  [name](const topolet_kv& setting) { return sdk::text(setting.key) == name; });
  const std::string_view value = sdk::value_of(settings, name);
  if (!is_set || std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return "";
  std::string words;
  for (const std::string_view word : allowed) words += (words.empty() ? "'" : ", '") + std::string(word) + '\'';
  return "annotation topolet.io/" + std::string(name) + " = '" + shown(value) + "': it must be one of " + words;
}

void wish_for_isolation(std::string_view annotated, const PolicyOptions& options, Wish& wish) {
  const bool asks = annotated == "isolate";
  if (asks && wish.cpus == 0) {
    wish.without_effect = "topolet.io/smt = isolate counts for containers with CPUs of their own";
    return;
  }
  if (options.isolate == Isolate::kOff) {
    if (asks) wish.without_effect = "topolet.io/smt = isolate has no effect: isolate-siblings = off";
    return;
  }
  const bool by_option = options.isolate == Isolate::kExclusive && annotated != "share";
  wish.isolated = wish.cpus > 0 && (asks || by_option);
  if (wish.isolated) wish.isolated_by = asks ? "topolet.io/smt = isolate" : "isolate-siblings = exclusive";
}

/// CPUs of containers that share are not told apart from others, and so counted as well.
std::size_t rest_of_pod(const topolet_request& request, std::size_t own) {
  const topolet_workload& workload = *request.workload;
  if (workload.pod_demand == nullptr) return 0;
  std::size_t placed = own;
  for (const topolet_ledger_entry& entry : sdk::entries(*request.ledger)) {
    const bool counts = entry.mode == TOPOLET_MODE_EXCLUSIVE && sdk::text(entry.pod_uid) == sdk::text(workload.pod_uid);
    if (counts) placed += sdk::size_of(entry.cpus);
  }
  const auto asked = static_cast<std::size_t>(std::max<std::int64_t>(0, workload.pod_demand->cpu_request_milli) / 1000);
  return asked > placed ? asked - placed : 0;
}

}  // namespace

PolicyOptions read_options(const sdk::Options& options) {
  PolicyOptions read;
  if (options["isolate-siblings"] == "off") read.isolate = Isolate::kOff;
  if (options["isolate-siblings"] == "exclusive") read.isolate = Isolate::kExclusive;
  read.pair = options["pair"] == "true";
  read.whole_cores = options.of_other("numa.full-pcpus-only") == "true";
  read.rounds_up = options["round"] != "deny";
  read.spreads_over_cores = options.of_other("numa.distribute-cpus-across-cores") == "true";
  read.places_pods = options.of_other("numa.scope") == "pod";
  const std::string_view kept = options.of_other("placement.min-shared-cpus");
  std::from_chars(kept.data(), kept.data() + kept.size(), read.min_shared_cpus);
  return read;
}

Profile profile_of(topolet_kvs settings) {
  const std::string_view profile = sdk::value_of(settings, kCpuProfile);
  if (profile == "heavy") return Profile::kHeavy;
  return profile == "light" ? Profile::kLight : Profile::kUnknown;
}

Wish wish_of(const topolet_request& request, const PolicyOptions& options) {
  const topolet_kvs settings = request.workload->settings;
  Wish wish;
  wish.bad_annotation = bad(settings, kSmt, {"isolate", "share"});
  if (wish.bad_annotation.empty()) wish.bad_annotation = bad(settings, kCpuProfile, {"heavy", "light"});
  if (!wish.bad_annotation.empty()) return wish;
  wish.cpus = request.exclusive != 0 ? request.exclusive_cpus : 0;
  wish_for_isolation(sdk::value_of(settings, kSmt), options, wish);
  wish.whole_cores = options.whole_cores && wish.cpus > 0;
  if (options.places_pods && wish.isolated) wish.rest_of_pod = rest_of_pod(request, wish.cpus);
  const Profile profile = profile_of(settings);
  if (options.pair) {
    wish.profile = profile;
  } else if (profile != Profile::kUnknown && wish.without_effect.empty()) {
    wish.without_effect = "topolet.io/cpu-profile has no effect: pair = false";
  }
  return wish;
}

}  // namespace topolet::smt
