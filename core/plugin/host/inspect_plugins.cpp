#include "core/plugin/host/inspect_plugins.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/run_in_child.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"
#include "core/plugin/host/load.hpp"
#include "core/topology/discover.hpp"

namespace topolet::plugin {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

Json encode(const config::OptionSpec& option) {
  return {{"section", option.section},   {"key", option.key},         {"type", static_cast<int>(option.type)},
          {"defaults", option.defaults}, {"allowed", option.allowed}, {"help", option.help},
          {"minimum", option.minimum},   {"maximum", option.maximum}, {"repeatable", option.repeatable},
          {"required", option.required}, {"secret", option.secret}};
}

config::OptionSpec decode(const Json& json) {
  return {.section = json["section"],
          .key = json["key"],
          .type = static_cast<config::OptionType>(json["type"].get<int>()),
          .defaults = json["defaults"],
          .allowed = json["allowed"],
          .help = json["help"],
          .repeatable = json["repeatable"],
          .minimum = json["minimum"],
          .maximum = json["maximum"],
          .required = json["required"],
          .secret = json["secret"]};
}

/// Returns a child's error as the text that it passes on.
std::string failed(const Error& error) {
  return Json{{"error", error.message}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The time that a child has, and how long it took.
struct Allowance {
  milliseconds limit;
  milliseconds used{0};
};

/// Returns the child's result, or an error that names the plugin.
Result<Json> ask_child(const std::string& plugin, Allowance& time,
                       const std::function<std::string(const Progress&)>& work) {
  using Kind = ChildEnd::Kind;
  const auto begin = std::chrono::steady_clock::now();
  const ChildEnd end = run_in_child(time.limit, work);
  time.used = std::chrono::ceil<milliseconds>(std::chrono::steady_clock::now() - begin);
  const auto failure = [&](const std::string& what) {
    return Error{Code::kFailedPrecondition, fmt::format("plugin {}: {} {}", plugin, end.current_step, what)};
  };
  switch (end.kind) {
    case Kind::kReturned: {
      Json said = Json::parse(end.text, nullptr, /*allow_exceptions=*/false);
      if (!said.is_object()) return failure("gave no result");
      if (said.contains("error")) return Error{Code::kFailedPrecondition, said["error"].get<std::string>()};
      return said;
    }
    case Kind::kThrew:
      return failure("threw: " + end.text);
    case Kind::kCrashed:
      return failure("crashed with " + end.text);
    case Kind::kExited:
      return failure("ended the process with exit status " + end.text);
    case Kind::kTimedOut:
      return failure(fmt::format("did not return within {} ms (placement.plugin-timeout)", time.limit.count()));
    case Kind::kTooMany:
      return failure(fmt::format("had {} at a time, and was ended", end.text));
    case Kind::kNotStarted:
      break;
  }
  return Error{Code::kUnavailable, fmt::format("plugin {}: no process to load it in: {}", plugin, end.text)};
}

/// The child's work: what the library says about itself.
std::string say_options(const std::filesystem::path& plugin_dir, const std::string& name, const Progress& progress) {
  progress("load");
  const auto library = PluginLibrary::load(plugin_dir, name);
  if (!library) return failed(library.error());
  Json options = Json::array();
  for (const config::OptionSpec& option : library->options()) options.push_back(encode(option));
  return Json{{"options", options}, {"weight", library->default_weight()}, {"description", library->description()}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Gathers an instance's warnings while it is created, about options that may not be as intended.
class Warnings : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::vector<std::string> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::move(texts_);
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    constexpr std::size_t kMost = 16;
    if (message.level >= spdlog::level::warn && texts_.size() < kMost)
      texts_.emplace_back(message.payload.data(), message.payload.size());
  }
  void flush_() override {}

  std::vector<std::string> texts_;
};

/// The child's work: whether an instance can be created, and which annotations it reads.
std::string say_created(const std::filesystem::path& plugin_dir, const config::PluginOptions& options,
                        const config::OptionValues& configuration, milliseconds deadline, const Progress& progress) {
  progress("load");
  const auto library = PluginLibrary::load(plugin_dir, options.name);
  if (!library) return failed(library.error());
  progress("read the machine for");
  const auto machine = topology::discover({});
  const auto warnings = std::make_shared<Warnings>();
  progress("create");
  auto policy =
      library->create({options.values.begin(), options.values.end()}, std::make_shared<Log>("topolet", warnings),
                      {.state = std::make_shared<InMemoryPluginState>(),
                       .configuration = configuration,
                       .machine = machine ? *machine : nullptr,
                       .purpose = TOPOLET_PURPOSE_CHECK,
                       .deadline = deadline});
  if (!policy) return failed(policy.error());
  static_cast<void>((*policy)->capabilities());
  Json said = {{"warnings", warnings->take()}};
  if ((*policy)->annotations()) said["annotations"] = *(*policy)->annotations();
  // A start does not destroy it either.
  static_cast<void>(new std::shared_ptr<PluginPolicy>(*std::move(policy)));
  return said.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<config::PluginSection> read_section(const std::filesystem::path& plugin_dir, const std::string& name,
                                           Allowance& time) {
  const auto said =
      ask_child(name, time, [&](const Progress& progress) { return say_options(plugin_dir, name, progress); });
  if (!said) return said.error();
  config::PluginSection section{name, {}, (*said)["weight"], (*said)["description"]};
  for (const Json& option : (*said)["options"]) section.options.push_back(decode(option));
  return section;
}

bool may_start(const std::string& name, const CrashLog* crashes) {
  return crashes == nullptr || crashes->why_quarantined(name).empty() || !crashes->crashed_at_start(name);
}

bool is_of_section(const config::RawConfig& raw, const config::ConfigMistake& mistake, const std::string& section) {
  if (mistake.message.find(section + '.') != std::string::npos) return true;
  return mistake.line != 0 &&
         std::any_of(raw.entries.begin(), raw.entries.end(), [&](const config::ConfigEntry& entry) {
           return entry.section == section && entry.file == mistake.file && entry.line == mistake.line;
         });
}

bool is_name_character(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

/// Where `message` has the word `name`; npos if it does not.
std::size_t find_name(const std::string& message, const std::string& name) {
  for (std::size_t at = message.find(name); at != std::string::npos; at = message.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || !is_name_character(message[at - 1]);
    if (begins && (end == message.size() || !is_name_character(message[end]))) return at;
  }
  return std::string::npos;
}

milliseconds time_limit(const config::RawConfig& raw) {
  return validate_config(raw, {}).options.placement.plugin_timeout;
}

std::optional<std::vector<std::string>> annotations_in(const Json& said) {
  if (!said.contains("annotations")) return std::nullopt;
  return said["annotations"].get<std::vector<std::string>>();
}

/// Returns an instance's description of itself, unless its own section has a mistake or it cannot be created, which is
/// noted in `found`. `load_time`: the time that loading took.
std::optional<Json> create_in_child(const config::RawConfig& raw, const config::PluginOptions& options,
                                    milliseconds load_time, PluginInspection& found) {
  const auto is_its = [&](const config::ConfigMistake& mistake) { return is_of_section(raw, mistake, options.name); };
  if (std::any_of(found.config.mistakes.begin(), found.config.mistakes.end(), is_its)) return std::nullopt;
  const std::filesystem::path plugin_dir = enabled_plugins(raw).plugin_dir;
  const config::OptionValues& configuration = found.config.options.configuration;
  // It is loaded once more.
  Allowance time{time_limit(raw) + 2 * load_time};
  auto said = ask_child(options.name, time, [&](const Progress& progress) {
    return say_created(plugin_dir, options, configuration, time_limit(raw), progress);
  });
  if (said) return *std::move(said);
  found.refused.push_back(plugin_mistake(raw, options.name, said.error().message));
  return std::nullopt;
}

}  // namespace

config::ConfigMistake plugin_mistake(const config::RawConfig& raw, const std::string& plugin, std::string message) {
  const config::ConfigEntry* about = nullptr;
  std::size_t first = std::string::npos;
  // Its own words, which may name the plugin again, come behind its name.
  const std::size_t words = std::min(message.find(": "), message.size());
  for (const config::ConfigEntry& entry : raw.entries) {
    if (entry.section == "plugins" && entry.key == "enable" && entry.value == plugin && about == nullptr)
      about = &entry;
    if (entry.section != plugin) continue;
    const std::size_t at = find_name(message.substr(words), entry.key);
    if (at > first || at == std::string::npos) continue;
    first = at;
    about = &entry;
  }
  if (about == nullptr) return {raw.file.string(), 0, std::move(message)};
  return {about->file, about->line, std::move(message)};
}

std::vector<config::PluginSection> inspect_options(const config::RawConfig& raw) {
  const config::EnabledPlugins choice = enabled_plugins(raw);
  std::vector<config::PluginSection> sections;
  for (const std::string& name : choice.enabled) {
    Allowance time{time_limit(raw)};
    if (auto section = read_section(choice.plugin_dir, name, time)) sections.push_back(*std::move(section));
  }
  return sections;
}

PluginInspection inspect_plugins(const config::RawConfig& raw, const CrashLog* crashes) {
  const config::EnabledPlugins choice = enabled_plugins(raw);
  PluginInspection found;
  std::vector<config::PluginSection> sections;
  std::map<std::string, milliseconds> loading;
  for (const std::string& name : choice.enabled) {
    if (!may_start(name, crashes)) {
      found.not_started.push_back(name);
      continue;
    }
    Allowance time{time_limit(raw)};
    if (auto section = read_section(choice.plugin_dir, name, time)) {
      sections.push_back(*std::move(section));
      loading[name] = time.used;
    } else {
      found.refused.push_back(plugin_mistake(raw, name, section.error().message));
    }
  }
  found.config = validate_config(raw, sections);
  found.annotations = placement::core_annotations();
  for (const config::PluginOptions& options : found.config.options.plugins) {
    const auto loaded = loading.find(options.name);
    std::optional<Json> said;
    if (loaded != loading.end()) said = create_in_child(raw, options, loaded->second, found);
    found.annotations.add_plugin(options.name, said ? annotations_in(*said) : std::nullopt);
    if (!said) continue;
    for (const Json& warning : (*said)["warnings"])
      found.warnings.push_back(plugin_mistake(raw, options.name, warning.get<std::string>()));
  }
  return found;
}

}  // namespace topolet::plugin
