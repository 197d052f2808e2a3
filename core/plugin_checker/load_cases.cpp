#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "core/base/forked_child.hpp"
#include "core/base/text.hpp"
#include "core/plugin/call/abi_request.hpp"
#include "core/plugin/call/capabilities.hpp"
#include "core/plugin/call/plugin_policy.hpp"
#include "core/plugin/guard/barrier.hpp"
#include "core/plugin/guard/plugin_tables.hpp"
#include "core/plugin_checker/cases.hpp"
#include "core/plugin_checker/exported_symbols.hpp"
#include "core/plugin_checker/footprint.hpp"
#include "core/plugin_checker/plugin_under_test.hpp"
#include "core/plugin_checker/random_request.hpp"

namespace topolet::plugin_checker {
namespace {

constexpr int kManyInstances = 1000;
constexpr std::size_t kKeptBytesAllowed = 256 << 10;
constexpr std::size_t kResidentKeptAllowed = 16 << 20;
constexpr double kCheapLoadMs = 100;
constexpr double kCheapCreateMs = 10;

Outcome loads(const CaseInput& input) {
  input.progress("loading the file");
  const auto plugin_under_test = PluginUnderTest::load(input.file);
  if (!plugin_under_test) return Outcome::failed({"a file that topoletd loads", plugin_under_test.error().message});
  const plugin::PluginLibrary& library = plugin_under_test->library();
  return Outcome::passed(fmt::format("{} {}", library.id(), library.version()));
}

Outcome exports_one_symbol(const CaseInput& input) {
  const auto exported = exported_symbols(input.file);
  if (!exported) return Outcome::failed({"a shared object", exported.error().message});
  if (*exported == std::vector<std::string>{TOPOLET_ENTRY_SYMBOL}) return Outcome::passed();
  std::vector<std::string> others = *exported;
  others.erase(std::remove(others.begin(), others.end(), TOPOLET_ENTRY_SYMBOL), others.end());
  std::string actual = others.size() == exported->size() ? "it is not exported" : "";
  if (!others.empty())
    actual += fmt::format("{}also exported: {}", actual.empty() ? "" : "; ", fmt::join(others, ", "));
  return Outcome::failed({fmt::format("{} is the only exported symbol; build with topolet_add_plugin of the SDK, or "
                                      "with the flags that pkg-config prints",
                                      TOPOLET_ENTRY_SYMBOL),
                          std::move(actual)});
}

MaybeMismatch judge_option(const config::OptionSpec& option) {
  if (option.help.empty()) return Mismatch{"every option to have a help text", option.key + " has none"};
  const std::set<std::string> distinct(option.allowed.begin(), option.allowed.end());
  if (distinct.size() != option.allowed.size()) return Mismatch{"each choice once", option.key + " has one twice"};
  if (distinct.count("") > 0) return Mismatch{"choices that can be written", option.key + " has an empty one"};
  return std::nullopt;
}

Outcome has_valid_option_table(const CaseInput& input) {
  const auto plugin_under_test = PluginUnderTest::load(input.file);
  if (!plugin_under_test) return Outcome::failed({"a loadable file", plugin_under_test.error().message});
  const plugin::PluginLibrary& library = plugin_under_test->library();
  if (library.version().empty()) return Outcome::failed({"a version", "an empty one"});
  for (const config::OptionSpec& option : library.options()) {
    if (auto mismatch = judge_option(option)) return Outcome::failed(*std::move(mismatch));
  }
  return Outcome::passed(fmt::format("{} options", library.options().size()));
}

Outcome is_fast_to_create(const CaseInput& input) {
  const double begin = cpu_ms();
  const auto plugin_under_test = PluginUnderTest::load(input.file);
  const double loaded = cpu_ms();
  if (!plugin_under_test) return Outcome::failed({"a loadable file", plugin_under_test.error().message});
  const auto plugin = plugin_under_test->create();
  const double created = cpu_ms();
  if (!plugin) return Outcome::failed({"an instance", plugin.error().message});
  const std::string note =
      fmt::format("load {:.1f} ms, create {:.1f} ms of CPU time", loaded - begin, created - loaded);
  if (loaded - begin <= kCheapLoadMs && created - loaded <= kCheapCreateMs) return Outcome::passed(note);
  return Outcome::warned(fmt::format("{}; more than {} and {} ms delay the start and reloads of the daemon", note,
                                     kCheapLoadMs, kCheapCreateMs));
}

std::string describe_annotations(const plugin::PluginPolicy& policy) {
  const std::optional<std::vector<std::string>>& names = policy.annotations();
  if (!names) return "does not say which annotations it reads";
  if (names->empty()) return "reads no annotations";
  std::string text = fmt::format("reads the annotations {}", fmt::join(*names, ", "));
  std::string before = "; of these only placement.exclusive-namespaces may use ";
  for (const placement::TakingAnnotation& taking : policy.taking_annotations()) {
    text += before + taking.name + (taking.value.empty() ? "" : " = " + taking.value);
    before = ", ";
  }
  return text;
}

std::string describe_codes(const plugin::PluginPolicy& policy) {
  if (policy.codes().empty()) return "";
  return fmt::format("; its reasons may have the codes {}", fmt::join(policy.codes(), ", "));
}

Outcome creates_with_defaults(const CaseInput& input) {
  const auto plugin_under_test = PluginUnderTest::load(input.file);
  if (!plugin_under_test) return Outcome::failed({"a loadable file", plugin_under_test.error().message});
  input.progress("create with every option at its default");
  const auto plugin = plugin_under_test->create();
  if (!plugin) return Outcome::failed({"an instance with every option at its default", plugin.error().message});
  std::vector<std::string> capabilities = (*plugin)->capabilities();
  std::erase(capabilities, TOPOLET_ANNOTATIONS_ID);
  std::erase(capabilities, TOPOLET_READS_ID);
  std::erase(capabilities, TOPOLET_CODES_ID);
  if (capabilities.empty())
    return Outcome::warned("it has no capability that this topolet asks for anything, so it is never asked");
  const std::string note =
      fmt::format("{}; {}", fmt::join(capabilities, ", "), describe_annotations(**plugin)) + describe_codes(**plugin);
  const std::string deprecation = deprecation_warning(**plugin, input.deprecated);
  return deprecation.empty() ? Outcome::passed(note) : Outcome::warned(note + "; " + deprecation);
}

/// A value to try and whether it must be taken; others may be refused with a reason.
struct ValueToTry {
  std::string value;
  bool must_be_accepted;
};

std::vector<ValueToTry> values_to_try(const config::OptionSpec& option) {
  std::vector<ValueToTry> values;
  for (const std::string& choice : option.allowed) values.push_back({choice, true});
  if (!values.empty()) return values;
  switch (option.type) {
    case config::OptionType::kBool:
      return {{"true", true}, {"false", true}};
    case config::OptionType::kInt:
    case config::OptionType::kFloat:
    case config::OptionType::kDuration:
    case config::OptionType::kSize:
      return {{std::to_string(option.minimum), false}, {std::to_string(option.maximum), false}};
    default:
      return {{"", false}, {std::string(65536, 'x'), false}, {"\xff\xfe\x80", false}, {" a b\t%s ", false}};
  }
}

/// Calls destroy() and returns the text of the exception that it threw, if any.
std::optional<std::string> destroy(const RawCreation& created) {
  if (created.instance == nullptr) return std::nullopt;
  return plugin::thrown_by([&] { created.instance->destroy(created.instance); });
}

/// Whatever create() is given: an instance, or a refusal with a reason that leaves *instance alone.
MaybeMismatch judge_creation(const RawCreation& created, const std::string& with) {
  const auto mismatch = [&with](std::string expected, const std::string& actual) {
    return Mismatch{std::move(expected), fmt::format("create {}: {}", with, actual)};
  };
  if (created.thrown) return mismatch("no exception to cross the boundary", *created.thrown);
  if (created.status == TOPOLET_OK) {
    if (created.instance == nullptr) return mismatch("an instance where it returns TOPOLET_OK", "none");
    return std::nullopt;
  }
  if (created.touched_instance) return mismatch("*instance left alone where it fails", "*instance written");
  if (created.status != TOPOLET_FAILED && created.status != TOPOLET_THREW) {
    return mismatch("TOPOLET_OK or TOPOLET_FAILED", fmt::format("status {}", created.status));
  }
  if (created.error.empty()) return mismatch("a reason where it fails", "none");
  return std::nullopt;
}

OptionValues with_value(OptionValues values, const config::OptionSpec& option, const std::string& value) {
  std::erase_if(values, [&option](const auto& other) { return other.first == option.key; });
  values.emplace_back(option.key, value);
  return values;
}

Outcome accepts_every_value(const CaseInput& input) {
  const auto plugin_under_test = PluginUnderTest::load(input.file);
  if (!plugin_under_test) return Outcome::failed({"a loadable file", plugin_under_test.error().message});
  const std::vector<config::OptionSpec>& options = plugin_under_test->library().options();
  int tried = 0;
  for (const config::OptionSpec& option : options) {
    for (const ValueToTry& to_try : values_to_try(option)) {
      const std::string with =
          fmt::format("with {} = '{}'", option.key, plugin::sanitize_text(plugin::view_of(to_try.value)).substr(0, 64));
      input.progress("create " + with);
      const RawCreation created =
          plugin_under_test->create_raw(with_value(default_values(options), option, to_try.value));
      if (auto mismatch = judge_creation(created, with)) return Outcome::failed(*std::move(mismatch));
      if (to_try.must_be_accepted && created.status != TOPOLET_OK) {
        return Outcome::failed(
            {"every value that its table allows to be taken", fmt::format("create {}: {}", with, created.error)});
      }
      (void)destroy(created);
      ++tried;
    }
  }
  return Outcome::passed(fmt::format("{} values", tried));
}

Outcome survives_missing_options(const CaseInput& input) {
  const auto plugin_under_test = PluginUnderTest::load(input.file);
  if (!plugin_under_test) return Outcome::failed({"a loadable file", plugin_under_test.error().message});
  const OptionValues all = default_values(plugin_under_test->library().options());
  std::vector<std::pair<std::string, OptionValues>> lists = {{"without any option", {}}};
  for (std::size_t i = 0; i < all.size() && all.size() > 1; ++i) {
    lists.emplace_back(fmt::format("without the option {}", all[i].first), all)
        .second.erase(lists.back().second.begin() + static_cast<std::ptrdiff_t>(i));
  }
  lists.emplace_back("with an option that is not in its table", all).second.emplace_back("of-a-later-version", "1");
  for (const auto& [with, options] : lists) {
    input.progress("create " + with);
    const RawCreation created = plugin_under_test->create_raw(options);
    if (auto mismatch = judge_creation(created, with)) return Outcome::failed(*std::move(mismatch));
    (void)destroy(created);
  }
  return Outcome::passed();
}

const void* capability_of(const topolet_instance& instance, std::string_view id) {
  const void* given = instance.get_capability(&instance, plugin::view_of(id));
  end_if_forked_child();
  return given;
}

/// What is reserved of the word behind struct_size: nothing in one struct, and in another one all but the flags.
std::uint32_t reserved_of(const void* given, std::string_view id) {
  std::uint32_t word = 0;
  if (id != TOPOLET_TICK_ID) std::memcpy(&word, static_cast<const char*>(given) + sizeof(word), sizeof(word));
  return id == TOPOLET_READS_ID ? word & ~TOPOLET_READS_LOAD : word;
}

MaybeMismatch judge_capability(const topolet_instance& instance, const char* id, std::size_t least_bytes) {
  const void* first = capability_of(instance, id);
  if (first != capability_of(instance, id)) {
    return Mismatch{"the same struct each time it is asked", fmt::format("two for {}", id)};
  }
  if (first == nullptr) return std::nullopt;
  std::uint32_t size = 0;
  std::memcpy(&size, first, sizeof(size));
  if (const std::uint32_t reserved = reserved_of(first, id); reserved != 0) {
    return Mismatch{"0 in what is reserved", fmt::format("{}: {}", id, reserved)};
  }
  if (size % 8 != 0) return Mismatch{"a struct_size that is a multiple of 8", fmt::format("{}: {}", id, size)};
  if (size >= least_bytes && size <= TOPOLET_STRUCT_MAX) return std::nullopt;
  return Mismatch{fmt::format("a struct_size of {} bytes or a little more", least_bytes),
                  fmt::format("{}: {}", id, size)};
}

/// Ids that nobody can have thought of, such as a later version's or another author's.
std::vector<std::string> random_ids(std::uint64_t seed) {
  RandomSource rng(seed);
  std::vector<std::string> ids;
  for (const char* prefix : {"topolet.", "topolet.score/", "org.example.", "", ""}) {
    std::string id = prefix;
    for (std::uint64_t i = 1 + rng.below(20); i > 0; --i) id += static_cast<char>('a' + rng.below(26));
    ids.push_back(id + "/" + std::to_string(rng.below(100)));
  }
  ids.emplace_back(std::string("\0\xff\n", 3));
  return ids;
}

MaybeMismatch judge_unknown_id(const topolet_instance& instance, std::string_view id, const Progress& progress) {
  const std::string name = printable(id, 64);
  progress(fmt::format("get_capability of the unknown id '{}'", name));
  if (capability_of(instance, id) == nullptr) return std::nullopt;
  return Mismatch{"null for an id that it cannot know", fmt::format("a struct for '{}'", name)};
}

MaybeMismatch judge_capabilities(const topolet_instance& instance, const CaseInput& input) {
  const Progress& progress = input.progress;
  const std::string long_id(65536, 't');
  const std::string_view prefixed = "topolet.score/10";
  for (const std::string_view id : {std::string_view(), std::string_view("topolet.score/2"), prefixed,
                                    prefixed.substr(0, 14), std::string_view("no.such/1"), std::string_view(long_id)}) {
    if (auto mismatch = judge_unknown_id(instance, id, progress)) return mismatch;
  }
  for (const std::string& id : random_ids(input.seed)) {
    if (auto mismatch = judge_unknown_id(instance, id, progress)) return mismatch;
  }
  MaybeMismatch mismatch;
  plugin::for_each_capability([&]<class Struct, class Member>(const plugin::Capability<Struct, Member>& capability) {
    if (!mismatch) mismatch = judge_capability(instance, capability.id, plugin::least_size_of(capability));
  });
  return mismatch;
}

Outcome knows_its_capabilities(const CaseInput& input) {
  const auto plugin_under_test = PluginUnderTest::load(input.file);
  if (!plugin_under_test) return Outcome::failed({"a loadable file", plugin_under_test.error().message});
  const RawCreation created = plugin_under_test->create_raw(default_values(plugin_under_test->library().options()));
  if (created.instance == nullptr) return Outcome::failed({"an instance", created.error});
  MaybeMismatch mismatch;
  const auto thrown = plugin::thrown_by([&] { mismatch = judge_capabilities(*created.instance, input); });
  if (thrown) return Outcome::failed({"no exception to cross the boundary", "get_capability " + *thrown});
  if (mismatch) return Outcome::failed(*std::move(mismatch));
  input.progress("destroy");
  if (const auto thrown_last = destroy(created)) {
    return Outcome::failed({"no exception to cross the boundary", "destroy " + *thrown_last});
  }
  return Outcome::passed();
}

Outcome leaks_nothing(const CaseInput& input) {
  const auto plugin_under_test = PluginUnderTest::load(input.file);
  if (!plugin_under_test) return Outcome::failed({"a loadable file", plugin_under_test.error().message});
  const std::string what = fmt::format("{} create and destroy", kManyInstances);
  input.progress(what);
  // The first instances may fill what a plugin makes once.
  for (int i = 0; i < 50; ++i) (void)plugin_under_test->create();
  const Footprint before = measure_footprint();
  for (int i = 0; i < kManyInstances; ++i) {
    if (const auto plugin = plugin_under_test->create(); !plugin) {
      return Outcome::failed({what, fmt::format("number {} failed: {}", i, plugin.error().message)});
    }
  }
  const Footprint grown = measure_footprint().grown_since(before);
  if (grown.descriptors > 0) {
    return Outcome::failed({"no open file left after " + what, fmt::format("{} more than before", grown.descriptors)});
  }
  if (grown.threads > 0) {
    return Outcome::failed({"no thread left after " + what, fmt::format("{} more than before", grown.threads)});
  }
  if (grown.kept_bytes > kKeptBytesAllowed || grown.resident_bytes > kResidentKeptAllowed) {
    return Outcome::failed(
        {"no memory kept after " + what, fmt::format("{} KiB of heap and {} KiB resident more than before",
                                                     grown.kept_bytes / 1024, grown.resident_bytes / 1024)});
  }
  return Outcome::passed();
}

}  // namespace

std::vector<Case> load_cases() {
  using Needs = Case::Needs;
  return {
      {"loads", "topoletd loads the file", Needs::kFile, loads},
      {"one-symbol", "topolet_plugin_v1 is exported and nothing else", Needs::kFile, exports_one_symbol},
      {"options", "the option table is valid", Needs::kLoaded, has_valid_option_table},
      {"create-defaults", "create succeeds with every option at its default", Needs::kLoaded, creates_with_defaults},
      {"create-values", "create accepts allowed values and survives bad ones", Needs::kLoaded, accepts_every_value},
      {"create-missing", "create with missing options, or with unknown ones", Needs::kLoaded, survives_missing_options},
      {"cheap", "load and create take little CPU time (a warning)", Needs::kCreated, is_fast_to_create},
      {"capabilities", "null for unknown ids, valid structs for known ones", Needs::kCreated, knows_its_capabilities},
      {"create-1000", "1,000 create and destroy keep no memory, files or threads", Needs::kCreated, leaks_nothing},
  };
}

}  // namespace topolet::plugin_checker
