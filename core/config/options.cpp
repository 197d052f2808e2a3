#include "core/config/options.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "core/base/suggestion.hpp"
#include "core/config/describe_options.hpp"

namespace topolet::config {
namespace {

namespace po = boost::program_options;

/// The number of calls that take all of their deadline and still fit into a decision by default.
constexpr int kCallsOfDecision = 4;

template <class List>
bool has(const List& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

/// Validates the entries one by one, so that a mistake hides none of those behind it.
class ConfigValidator {
 public:
  ConfigValidator(const RawConfig& raw, const std::vector<PluginSection>& sections)
      : raw_(raw), mistakes_(raw.mistakes), enabled_(enabled_plugins(raw).enabled) {
    specs_ = all_options(enabled_, sections);
    for (const PluginSection& section : sections) plugins_with_options_.insert(section.plugin);
    for (const OptionSpec& spec : specs_) names_.push_back(spec.name());
  }

  /// The values of all options, defaults included.
  po::variables_map validate() {
    for (const SectionHeader& header : raw_.sections) validate_section(header);
    for (const ConfigEntry& entry : raw_.replaced) validate_entry(entry, replaced_);
    for (const ConfigEntry& entry : raw_.entries) validate_entry(entry, accepted_);
    for (const OptionSpec& spec : specs_) validate_lone_values(spec);
    for (const OptionSpec& spec : specs_) validate_presence(spec);
    validate_handlers();
    validate_front();
    const po::options_description description = describe(specs_);
    po::parsed_options parsed(&description);
    for (const ConfigEntry* entry : accepted_) {
      // Flags take the place of the file's entries, repeatable options as a whole.
      if (!entry->is_flag() && set_by_flag_.count(name_of(*entry)) > 0) continue;
      parsed.options.push_back(po::option(name_of(*entry), {entry->value}));
    }
    po::variables_map values;
    po::store(parsed, values);
    return values;
  }

  std::vector<ConfigMistake> take_mistakes() {
    sort_by_place(raw_, mistakes_);
    return std::move(mistakes_);
  }

  const std::vector<std::string>& enabled() const { return enabled_; }
  const std::vector<OptionSpec>& specs() const { return specs_; }

 private:
  static std::string name_of(const ConfigEntry& entry) { return entry.section + '.' + entry.key; }

  void add(const ConfigEntry& entry, std::string message) {
    mistakes_.push_back({entry.file, entry.line, std::move(message)});
  }

  /// Returns true for a plugin that could not be loaded. Its options are unknown, and the loader reports that mistake.
  bool lacks_option_table(const std::string& section) const {
    return has(enabled_, section) && plugins_with_options_.count(section) == 0;
  }

  bool is_known_section(const std::string& section) const {
    return has(enabled_, section) ||
           std::any_of(specs_.begin(), specs_.end(), [&section](const auto& spec) { return spec.section == section; });
  }

  void validate_section(const SectionHeader& header) {
    if (is_known_section(header.name)) return;
    std::vector<std::string> known = {"daemon", "placement", "nri", "plugins"};
    known.insert(known.end(), enabled_.begin(), enabled_.end());
    std::string hint = suggestion(header.name, known);
    if (check_plugin_name(header.name)) {
      hint +=
          " (the section of a plugin is known once the plugin is enabled: enable = " + header.name + " in [plugins])";
    }
    mistakes_.push_back({header.file, header.line, "unknown section [" + header.name + "]" + hint});
  }

  /// `valid`: where it goes if nothing is wrong with it.
  void validate_entry(const ConfigEntry& entry, std::vector<const ConfigEntry*>& valid) {
    const std::string name = name_of(entry);
    const auto spec = std::find_if(specs_.begin(), specs_.end(), [&name](const auto& s) { return s.name() == name; });
    if (spec == specs_.end()) return report_unknown(entry);
    if (!validate_repetition(*spec, entry)) return;
    if (const Status fits = check_value(*spec, entry.value); !fits)
      return add(entry, name + ": " + fits.error().message);
    valid.push_back(&entry);
    if (entry.is_flag()) set_by_flag_.insert(name);
  }

  void report_unknown(const ConfigEntry& entry) {
    if (lacks_option_table(entry.section)) return;
    const std::string name = entry.section.empty() ? entry.key : name_of(entry);
    if (entry.is_flag()) {
      std::vector<std::string> known = names_;
      known.insert(known.end(), {"config", "check-config", "take-over", "help", "version"});
      if (!entry.section.empty() && !is_known_section(entry.section)) {
        return add(entry, "unknown option --" + name + key_suggestion(name, known, "--") +
                              " (the options of a plugin are known once it is enabled: --plugins.enable=" +
                              entry.section + ")");
      }
      return add(entry, "unknown option --" + name + key_suggestion(name, known, "--"));
    }
    if (entry.section.empty()) {
      return add(entry, "'" + name + "' stands before any [section]" + key_suggestion(name, names_));
    }
    if (!is_known_section(entry.section)) return;  // said of the section as a whole
    for (const std::string prefix : {"weight.", "on-failure.", "required."}) {
      if (entry.section != "plugins" || entry.key.rfind(prefix, 0) != 0) continue;
      const std::string plugin = entry.key.substr(prefix.size());
      if (const std::string near = suggestion(plugin, enabled_, "plugins." + prefix); !near.empty())
        return add(entry, "unknown key " + name + near);
      return add(entry, name + ": the plugin '" + plugin + "' is not enabled; add enable = " + plugin +
                            " to [plugins], or remove this line");
    }
    add(entry, "unknown key " + name + key_suggestion(name, names_));
  }

  /// False, and a mistake, if the option was set before in the same file, or the same command line, and may be set only
  /// once there, or is repeated word for word.
  bool validate_repetition(const OptionSpec& spec, const ConfigEntry& entry) {
    const auto before = std::find_if(seen_.begin(), seen_.end(), [&](const ConfigEntry* other) {
      return name_of(*other) == spec.name() && other->file == entry.file &&
             (!spec.repeatable || other->value == entry.value);
    });
    if (before == seen_.end()) {
      seen_.push_back(&entry);
      return true;
    }
    const std::string what = spec.repeatable ? spec.name() + " = " + shown_value(spec, entry.value) : spec.name();
    add(entry,
        what + (entry.is_flag() ? " is given twice" : " is already set in line " + std::to_string((*before)->line)));
    return false;
  }

  /// Reports a required option that nothing sets where its plugin is enabled.
  void validate_presence(const OptionSpec& spec) {
    if (!spec.required || is_named(spec.name())) return;
    ConfigEntry place{.section = {}, .key = {}, .value = {}, .file = raw_.file.string()};
    for (const ConfigEntry& entry : raw_.entries) {
      if (entry.section == "plugins" && entry.key == "enable" && entry.value == spec.section) place = entry;
    }
    add(place, spec.name() + " is required by the plugin " + spec.section + "; add a line " + spec.key +
                   " = VALUE to section [" + spec.section + "]");
  }

  /// Returns true if anything sets the option, with whatever value.
  bool is_named(const std::string& name) const {
    return std::any_of(raw_.entries.begin(), raw_.entries.end(),
                       [&name](const ConfigEntry& entry) { return name_of(entry) == name; });
  }

  /// Whoever writes "all" and a name below it may mean either.
  void validate_lone_values(const OptionSpec& spec) {
    if (spec.lone.empty()) return;
    std::map<std::string, std::vector<const ConfigEntry*>> by_file;
    for (const auto* entries : {&replaced_, &accepted_}) {
      for (const ConfigEntry* entry : *entries) {
        if (name_of(*entry) == spec.name()) by_file[entry->file].push_back(entry);
      }
    }
    for (const auto& [file, all] : by_file) {
      const auto lone =
          std::find_if(all.begin(), all.end(), [&](const ConfigEntry* entry) { return has(spec.lone, entry->value); });
      if (lone == all.end() || all.size() == 1) continue;
      add(**lone, spec.name() + " = " + (*lone)->value + " contradicts the others; remove it, or all the others");
    }
  }

  /// Each says whose containers are placed.
  void validate_handlers() {
    const ConfigEntry* old = first_accepted("placement.handlers");
    if (old == nullptr || first_accepted("placement.foreign-handlers") == nullptr) return;
    add(*old,
        "placement.handlers and placement.foreign-handlers are both set; remove placement.handlers, which goes "
        "with version 1.0");
  }

  /// The runtime is asked about each container, and cannot be told what the kubelet reads.
  void validate_front() {
    const ConfigEntry* front = first_accepted("daemon.front");
    if (front == nullptr || front->value != "nri") return;
    const ConfigEntry* socket = first_accepted("nri.socket");
    if (socket != nullptr && socket->value == "none")
      add(*front, "daemon.front = nri needs the runtime's NRI socket, and nri.socket is none; remove that line");
    const ConfigEntry* quota = first_accepted("placement.exclusive-quota");
    if (quota != nullptr && quota->value == "drop")
      add(*quota,
          "placement.exclusive-quota = drop needs daemon.front = cri: over NRI the kubelet would read that its "
          "containers have no quota, and set it again; use keep");
  }

  const ConfigEntry* first_accepted(const std::string& name) const {
    const auto found = std::find_if(accepted_.begin(), accepted_.end(),
                                    [&name](const ConfigEntry* entry) { return name_of(*entry) == name; });
    return found == accepted_.end() ? nullptr : *found;
  }

  const RawConfig& raw_;
  std::vector<ConfigMistake> mistakes_;
  std::vector<std::string> enabled_;
  std::vector<OptionSpec> specs_;
  std::vector<std::string> names_;
  std::set<std::string> plugins_with_options_;  ///< plugins whose options are known
  std::set<std::string> set_by_flag_;           ///< options that the command line sets
  std::vector<const ConfigEntry*> seen_;
  std::vector<const ConfigEntry*> accepted_;
  std::vector<const ConfigEntry*> replaced_;  ///< accepted, but a later file says something else
};

const std::string& text(const po::variables_map& values, const std::string& name) {
  return values[name].as<std::string>();
}

const std::vector<std::string>& list(const po::variables_map& values, const std::string& name) {
  return values[name].as<std::vector<std::string>>();
}

/// The values below were validated before, so that reading them cannot fail.
CpuSet cpus(const std::string& value) { return value == "none" ? CpuSet() : *CpuSet::parse(value); }

DaemonOptions daemon_options(const po::variables_map& values) {
  const auto socket = [&values](const char* name) { return *parse_socket(text(values, name)); };
  DaemonOptions daemon;
  if (text(values, "daemon.front") == "nri") daemon.front = Front::kNri;
  if (daemon.front == Front::kCri) daemon.listen = socket("daemon.listen");
  daemon.control = socket("daemon.control");
  if (text(values, "daemon.watch") != "none") daemon.watch = socket("daemon.watch");
  daemon.watch_group = text(values, "daemon.watch-group");
  daemon.runtime = socket("daemon.runtime");
  daemon.image = text(values, "daemon.image").empty() ? daemon.runtime : socket("daemon.image");
  daemon.cpu_manager_state = text(values, "daemon.cpu-manager-state");
  daemon.state_dir = text(values, "daemon.state-dir");
  daemon.plugin_dir = text(values, "daemon.plugin-dir");
  daemon.log_level = text(values, "daemon.log-level");
  daemon.durability =
      text(values, "daemon.durability") == "full" ? store::Durability::kFull : store::Durability::kNormal;
  daemon.store_patience = *parse_duration(text(values, "daemon.store-patience"));
  daemon.drain_timeout = *parse_duration(text(values, "daemon.drain-timeout"));
  const auto number = [&values](const char* name) { return std::stoi(text(values, name)); };
  daemon.retention.keep = *parse_duration(text(values, "daemon.keep"));
  daemon.retention.keep_bytes = std::int64_t{number("daemon.keep-mib")} << 20;
  daemon.load = text(values, "daemon.load");
  if (text(values, "daemon.record") != "none") daemon.record = text(values, "daemon.record");
  daemon.record_bytes = static_cast<std::uint64_t>(number("daemon.record-mib")) << 20;
  daemon.max_connections = static_cast<std::size_t>(number("daemon.max-connections"));
  daemon.max_memory_bytes = static_cast<std::size_t>(number("daemon.max-memory-mib")) << 20;
  daemon.max_message_bytes = number("daemon.max-message-mib") << 20;
  daemon.max_metadata_bytes = number("daemon.max-metadata-mib") << 20;
  return daemon;
}

placement::ExclusiveRule exclusive_rule(const std::string& value) {
  if (value == "never") return placement::ExclusiveRule::kNever;
  return value == "annotated" ? placement::ExclusiveRule::kAnnotated : placement::ExclusiveRule::kGuaranteedInteger;
}

placement::IsolatedRule isolated_rule(const std::string& value) {
  if (value == "prefer") return placement::IsolatedRule::kPrefer;
  return value == "always" ? placement::IsolatedRule::kAlways : placement::IsolatedRule::kAnnotated;
}

placement::HealRule heal_rule(const std::string& value) {
  if (value == "off") return placement::HealRule::kOff;
  return value == "all" ? placement::HealRule::kAll : placement::HealRule::kShared;
}

placement::MakeRoomRule make_room_rule(const std::string& value) {
  if (value == "off") return placement::MakeRoomRule::kOff;
  return value == "node" ? placement::MakeRoomRule::kNode : placement::MakeRoomRule::kAll;
}

/// 'none' is a list of no names.
std::optional<std::vector<std::string>> permitted_annotations(std::vector<std::string> names) {
  if (has(names, "all")) return std::nullopt;
  std::erase(names, "none");
  return names;
}

PlacementOptions placement_options(const po::variables_map& values) {
  PlacementOptions placement;
  placement.reserved_cpus = cpus(text(values, "placement.reserved-cpus"));
  const std::string& allowed = text(values, "placement.allowed-cpus");
  if (allowed != "all") placement.allowed_cpus = cpus(allowed);
  placement.rules.min_shared_cpus = static_cast<std::uint32_t>(std::stoul(text(values, "placement.min-shared-cpus")));
  placement.rules.exclusive = exclusive_rule(text(values, "placement.exclusive"));
  placement.rules.reserved_namespaces = list(values, "placement.reserved-namespaces");
  placement.rules.exclusive_namespaces = list(values, "placement.exclusive-namespaces");
  std::erase(placement.rules.exclusive_namespaces, "none");
  placement.rules.when_full =
      text(values, "placement.when-full") == "share" ? placement::WhenFull::kShare : placement::WhenFull::kDeny;
  placement.rules.isolated = isolated_rule(text(values, "placement.isolated"));
  placement.rules.node_name = text(values, "daemon.node-name");
  placement.rules.annotations = permitted_annotations(list(values, "placement.annotations"));
  placement.rules.crash_hold = *parse_duration(text(values, "placement.crash-hold"));
  placement.rules.drop_exclusive_quota = text(values, "placement.exclusive-quota") == "drop";
  placement.rules.memory_migrate = text(values, "placement.memory-migrate") == "true";
  placement.rules.heal = heal_rule(text(values, "placement.heal"));
  placement.rules.make_room = make_room_rule(text(values, "placement.make-room"));
  placement.rules.move_memory_bytes = static_cast<std::uint64_t>(*parse_size(text(values, "placement.move-memory")));
  placement.pending_timeout = *parse_duration(text(values, "placement.pending-timeout"));
  placement.start_grace = *parse_duration(text(values, "placement.start-grace"));
  placement.deadline = std::chrono::milliseconds(std::stol(text(values, "placement.deadline-ms")));
  placement.decision_time = std::chrono::milliseconds(std::stol(text(values, "placement.decision-ms")));
  // Whoever gives each call more time means to give it to a decision.
  if (values["placement.decision-ms"].defaulted())
    placement.decision_time = std::max(placement.decision_time, kCallsOfDecision * placement.deadline);
  placement.plugin_timeout = *parse_duration(text(values, "placement.plugin-timeout"));
  if (!values["placement.handlers"].defaulted()) placement.handlers.only = list(values, "placement.handlers");
  placement.handlers.foreign = list(values, "placement.foreign-handlers");
  std::erase(placement.handlers.foreign, "none");
  placement.confine_foreign = text(values, "placement.confine-foreign") == "true";
  return placement;
}

NriOptions nri_options(const po::variables_map& values) {
  NriOptions nri;
  const std::string& guard = text(values, "nri.guard");
  nri.guard = guard == "off" ? NriGuard::kOff : guard == "deny" ? NriGuard::kDeny : NriGuard::kWarn;
  if (text(values, "nri.socket") != "none") nri.socket = *parse_socket(text(values, "nri.socket"));
  return nri;
}

/// Returns the values of an option. There is none only of a required one that is not set, which is a mistake.
std::vector<std::string> texts(const po::variables_map& values, const OptionSpec& spec) {
  if (values.count(spec.name()) == 0) return {};
  if (spec.repeatable) return list(values, spec.name());
  return {text(values, spec.name())};
}

/// Returns the values of all options but secrets, by "SECTION.KEY", as plugins are given them.
OptionValues values_for_plugins(const po::variables_map& values, const std::vector<OptionSpec>& specs) {
  OptionValues shown;
  for (const OptionSpec& spec : specs) {
    if (spec.secret) continue;
    for (const std::string& value : texts(values, spec)) shown.emplace(spec.name(), plain_value(spec, value));
  }
  return shown;
}

PluginOptions plugin_options(const po::variables_map& values, const std::string& plugin,
                             const std::vector<OptionSpec>& specs) {
  PluginOptions options;
  options.name = plugin;
  options.weight = std::stoi(text(values, "plugins.weight." + plugin));
  options.fail_closed = text(values, "plugins.on-failure." + plugin) == "closed";
  options.required = text(values, "plugins.required." + plugin) == "true";
  for (const OptionSpec& spec : specs) {
    if (spec.section != plugin) continue;
    for (std::string& value : texts(values, spec)) options.values.emplace(spec.key, std::move(value));
  }
  return options;
}

/// As set by flags, or else by the file, or else by default.
std::vector<std::string> values_of(const OptionSpec& spec, const RawConfig& raw) {
  std::vector<std::string> flags;
  std::vector<std::string> file;
  for (const ConfigEntry& entry : raw.entries) {
    if (entry.section + '.' + entry.key == spec.name()) (entry.is_flag() ? flags : file).push_back(entry.value);
  }
  if (!flags.empty()) return flags;
  return file.empty() ? spec.defaults : file;
}

/// The plugins' own sections are reloadable too, and no core options.
bool is_reloadable(const OptionSpec& spec) { return spec.section == "plugins" || spec.name() == "daemon.log-level"; }

}  // namespace

std::vector<OptionSpec> all_options(const std::vector<std::string>& plugins,
                                    const std::vector<PluginSection>& sections) {
  std::vector<OptionSpec> specs = core_options(plugins);
  std::set<std::string> names;
  for (const PluginSection& section : sections) {
    for (OptionSpec& spec : specs) {
      if (spec.name() == "plugins.weight." + section.plugin) spec.defaults = {std::to_string(section.default_weight)};
    }
    for (const OptionSpec& spec : section.options) {
      // A plugin that names an option twice must not stop the daemon: Boost throws when it meets the second.
      if (names.insert(spec.name()).second) specs.push_back(spec);
    }
  }
  return specs;
}

EnabledPlugins enabled_plugins(const RawConfig& raw) {
  const OptionSpec enable = core_options({}).back();
  EnabledPlugins choice;
  choice.plugin_dir = TOPOLET_PLUGIN_DIR;
  bool from_flags = false;
  for (const ConfigEntry& entry : raw.entries) {
    if (entry.section == "daemon" && entry.key == "plugin-dir") choice.plugin_dir = entry.value;
    if (entry.section != enable.section || entry.key != enable.key) continue;
    if (entry.is_flag() && !std::exchange(from_flags, true)) choice.enabled.clear();
    if (check_value(enable, entry.value).has_value() && !has(choice.enabled, entry.value)) {
      choice.enabled.push_back(entry.value);
    }
  }
  return choice;
}

ValidatedConfig validate_config(const RawConfig& raw, const std::vector<PluginSection>& sections) {
  ConfigValidator validator(raw, sections);
  const po::variables_map values = validator.validate();
  ValidatedConfig checked;
  checked.options.daemon = daemon_options(values);
  checked.options.placement = placement_options(values);
  checked.options.nri = nri_options(values);
  for (const std::string& plugin : validator.enabled()) {
    checked.options.plugins.push_back(plugin_options(values, plugin, validator.specs()));
  }
  checked.options.configuration = values_for_plugins(values, validator.specs());
  // As it counts, where it follows deadline-ms.
  checked.options.configuration.find("placement.decision-ms")->second =
      std::to_string(checked.options.placement.decision_time.count());
  checked.mistakes = validator.take_mistakes();
  return checked;
}

std::vector<ConfigEntry> without_secrets(std::vector<ConfigEntry> entries, const std::vector<PluginSection>& sections) {
  std::vector<std::string> plugins;
  for (const PluginSection& section : sections) plugins.push_back(section.plugin);
  const std::vector<OptionSpec> specs = all_options(plugins, sections);
  const auto is_of_known_section = [&](const ConfigEntry& entry) {
    return std::any_of(specs.begin(), specs.end(), [&](const auto& spec) { return spec.section == entry.section; });
  };
  for (ConfigEntry& entry : entries) {
    const auto spec = std::find_if(specs.begin(), specs.end(), [&](const OptionSpec& option) {
      return option.section == entry.section && option.key == entry.key;
    });
    if (spec != specs.end()) {
      entry.value = shown_value(*spec, entry.value);
    } else if (!is_of_known_section(entry) && may_be_secret(entry.value)) {
      entry.value = kHiddenValue;
    }
  }
  return entries;
}

RawConfig in_force_after_reload(const RawConfig& before, const RawConfig& after) {
  std::vector<OptionSpec> fixed = core_options({});
  std::erase_if(fixed, is_reloadable);
  const auto is_fixed = [&](const ConfigEntry& entry) {
    return std::any_of(fixed.begin(), fixed.end(),
                       [&](const OptionSpec& spec) { return spec.section == entry.section && spec.key == entry.key; });
  };
  RawConfig in_force;
  std::copy_if(before.entries.begin(), before.entries.end(), std::back_inserter(in_force.entries), is_fixed);
  std::copy_if(after.entries.begin(), after.entries.end(), std::back_inserter(in_force.entries), std::not_fn(is_fixed));
  return in_force;
}

std::vector<std::string> keys_needing_restart(const RawConfig& before, const RawConfig& after) {
  std::vector<std::string> changed;
  for (const OptionSpec& spec : core_options({})) {
    if (!is_reloadable(spec) && values_of(spec, before) != values_of(spec, after)) changed.push_back(spec.name());
  }
  return changed;
}

}  // namespace topolet::config
