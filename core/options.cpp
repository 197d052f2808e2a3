#include "core/options.hpp"

#include <algorithm>
#include <boost/make_shared.hpp>
#include <boost/program_options.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

namespace topolet {
namespace {

namespace po = boost::program_options;

constexpr unsigned kHelpColumns = 100;

template <class List>
bool has(const List& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

std::string listed(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return list;
}

std::vector<OptionSpec> all_options(const std::vector<std::string>& plugins,
                                    const std::vector<PluginSection>& sections) {
  std::vector<OptionSpec> specs = core_options(plugins);
  std::set<std::string> names;
  for (const PluginSection& section : sections) {
    for (OptionSpec& spec : specs) {
      if (spec.name() == "plugins.weight." + section.plugin) spec.defaults = {std::to_string(section.default_weight)};
    }
    for (OptionSpec& spec : options_of(section)) {
      // A plugin that names an option twice must not stop the daemon: Boost throws when it meets the second.
      if (names.insert(spec.name()).second) specs.push_back(std::move(spec));
    }
  }
  return specs;
}

const char* value_name(const OptionSpec& spec) {
  switch (spec.type) {
    case OptionType::kBool:
      return "BOOL";
    case OptionType::kInt:
      return "NUMBER";
    case OptionType::kDuration:
      return "DURATION";
    case OptionType::kCpus:
      return "CPUS";
    case OptionType::kSocket:
      return "SOCKET";
    case OptionType::kPath:
      return "PATH";
    case OptionType::kName:
      return "NAME";
    case OptionType::kString:
      return "WORD";
  }
  return "VALUE";
}

const po::value_semantic* semantic(const OptionSpec& spec) {
  if (spec.repeatable) {
    return po::value<std::vector<std::string>>()
        ->composing()
        ->value_name(value_name(spec))
        ->default_value(spec.defaults, spec.defaults.empty() ? "none" : listed(spec.defaults));
  }
  return po::value<std::string>()->value_name(value_name(spec))->default_value(spec.defaults.front());
}

std::string explanation(const OptionSpec& spec) {
  std::string text = spec.help;
  if (!spec.allowed.empty() && spec.type != OptionType::kCpus) text += " One of: " + listed(spec.allowed) + ".";
  if (spec.repeatable) text += " May be given several times.";
  return text;
}

/// What Boost.Program_options knows of the options; it owns the values once they are judged.
po::options_description describe(const std::vector<OptionSpec>& specs, const std::string& caption = "") {
  po::options_description description(caption, kHelpColumns, kHelpColumns / 2);
  for (const OptionSpec& spec : specs) {
    description.add(
        boost::make_shared<po::option_description>(spec.name().c_str(), semantic(spec), explanation(spec).c_str()));
  }
  return description;
}

/// Judges the settings one by one, so that a mistake hides none of those behind it.
class Judge {
 public:
  Judge(const RawConfig& raw, const std::vector<PluginSection>& sections)
      : raw_(raw), mistakes_(raw.mistakes), enabled_(plugin_choice(raw).enabled) {
    specs_ = all_options(enabled_, sections);
    for (const PluginSection& section : sections) tabled_.insert(section.plugin);
    for (const OptionSpec& spec : specs_) names_.push_back(spec.name());
  }

  /// The values of all options, defaults included.
  po::variables_map judge() {
    for (const SectionHeader& header : raw_.sections) judge_section(header);
    for (const Setting& setting : raw_.settings) judge_setting(setting);
    const po::options_description description = describe(specs_);
    po::parsed_options parsed(&description);
    for (const Setting* setting : accepted_) {
      // Flags take the place of what the file says, repeatable options as a whole.
      if (!setting->is_flag() && flagged_.count(name_of(*setting)) > 0) continue;
      parsed.options.push_back(po::option(name_of(*setting), {setting->value}));
    }
    po::variables_map values;
    po::store(parsed, values);
    return values;
  }

  std::vector<ConfigMistake> take_mistakes() {
    std::stable_sort(mistakes_.begin(), mistakes_.end(), [](const ConfigMistake& a, const ConfigMistake& b) {
      return std::make_pair(a.file.empty(), a.line) < std::make_pair(b.file.empty(), b.line);
    });
    return std::move(mistakes_);
  }

  const std::vector<std::string>& enabled() const { return enabled_; }
  const std::vector<OptionSpec>& specs() const { return specs_; }

 private:
  static std::string name_of(const Setting& setting) { return setting.section + '.' + setting.key; }

  void add(const Setting& setting, std::string message) {
    mistakes_.push_back({setting.file, setting.line, std::move(message)});
  }

  /// Of a plugin that could not be loaded nothing is known; that mistake is the loader's to report.
  bool is_untabled_plugin(const std::string& section) const {
    return has(enabled_, section) && tabled_.count(section) == 0;
  }

  bool is_known_section(const std::string& section) const {
    return has(enabled_, section) ||
           std::any_of(specs_.begin(), specs_.end(), [&section](const auto& spec) { return spec.section == section; });
  }

  void judge_section(const SectionHeader& header) {
    if (is_known_section(header.name)) return;
    std::vector<std::string> known = {"daemon", "placement", "plugins"};
    known.insert(known.end(), enabled_.begin(), enabled_.end());
    mistakes_.push_back({raw_.file.string(), header.line,
                         "unknown section [" + header.name + "]; " + suggestion(header.name, known) +
                             " (a plugin's section counts once the plugin is enabled: enable = " + header.name +
                             " in [plugins])"});
  }

  void judge_setting(const Setting& setting) {
    const std::string name = name_of(setting);
    const auto spec = std::find_if(specs_.begin(), specs_.end(), [&name](const auto& s) { return s.name() == name; });
    if (spec == specs_.end()) return judge_unknown(setting);
    if (!judge_repetition(*spec, setting)) return;
    if (const Status fits = check_value(*spec, setting.value); !fits)
      return add(setting, name + ": " + fits.error().message);
    accepted_.push_back(&setting);
    if (setting.is_flag()) flagged_.insert(name);
  }

  void judge_unknown(const Setting& setting) {
    if (is_untabled_plugin(setting.section)) return;
    const std::string name = setting.section.empty() ? setting.key : name_of(setting);
    if (setting.is_flag()) {
      std::vector<std::string> known = names_;
      known.insert(known.end(), {"config", "check-config", "help", "version"});
      if (!setting.section.empty() && !is_known_section(setting.section)) {
        return add(setting, "unknown option --" + name + "; " + suggestion(name, known, "--") +
                                " (a plugin's options count once the plugin is enabled: --plugins.enable=" +
                                setting.section + ")");
      }
      return add(setting, "unknown option --" + name + "; " + suggestion(name, known, "--"));
    }
    if (setting.section.empty()) {
      return add(setting, "'" + name + "' stands before any [section]; " + suggestion(name, names_));
    }
    if (!is_known_section(setting.section)) return;  // said of the section as a whole
    for (const std::string prefix : {"weight.", "on-failure.", "required."}) {
      if (setting.section != "plugins" || setting.key.rfind(prefix, 0) != 0) continue;
      const std::string plugin = setting.key.substr(prefix.size());
      return add(setting, name + ": the plugin '" + plugin + "' is not enabled; add enable = " + plugin +
                              " to [plugins], or take this line out");
    }
    add(setting, "unknown key " + name + "; " + suggestion(name, names_));
  }

  /// False, and a mistake, if the option was set before and may be set only once, or is repeated word for word.
  bool judge_repetition(const OptionSpec& spec, const Setting& setting) {
    const auto before = std::find_if(seen_.begin(), seen_.end(), [&](const Setting* other) {
      return name_of(*other) == spec.name() && other->is_flag() == setting.is_flag() &&
             (!spec.repeatable || other->value == setting.value);
    });
    if (before == seen_.end()) {
      seen_.push_back(&setting);
      return true;
    }
    const std::string what = spec.repeatable ? spec.name() + " = " + setting.value : spec.name();
    add(setting,
        what + (setting.is_flag() ? " is given twice" : " is already set in line " + std::to_string((*before)->line)));
    return false;
  }

  const RawConfig& raw_;
  std::vector<ConfigMistake> mistakes_;
  std::vector<std::string> enabled_;
  std::vector<OptionSpec> specs_;
  std::vector<std::string> names_;
  std::set<std::string> tabled_;   ///< plugins whose options are known
  std::set<std::string> flagged_;  ///< options that the command line sets
  std::vector<const Setting*> seen_;
  std::vector<const Setting*> accepted_;
};

const std::string& text(const po::variables_map& values, const std::string& name) {
  return values[name].as<std::string>();
}

const std::vector<std::string>& list(const po::variables_map& values, const std::string& name) {
  return values[name].as<std::vector<std::string>>();
}

/// The values below were judged before, so that reading them cannot fail.
CpuSet cpus(const std::string& value) { return value == "none" ? CpuSet() : *CpuSet::parse(value); }

DaemonOptions daemon_options(const po::variables_map& values) {
  const auto socket = [&values](const char* name) { return *parse_socket(text(values, name)); };
  DaemonOptions daemon;
  daemon.listen = socket("daemon.listen");
  daemon.control = socket("daemon.control");
  daemon.runtime = socket("daemon.runtime");
  daemon.image = text(values, "daemon.image").empty() ? daemon.runtime : socket("daemon.image");
  daemon.state_dir = text(values, "daemon.state-dir");
  daemon.plugin_dir = text(values, "daemon.plugin-dir");
  daemon.log_level = text(values, "daemon.log-level");
  daemon.durability = text(values, "daemon.durability") == "full" ? Durability::kFull : Durability::kNormal;
  daemon.store_patience = *parse_duration(text(values, "daemon.store-patience"));
  const auto number = [&values](const char* name) { return std::stoi(text(values, name)); };
  daemon.max_connections = static_cast<std::size_t>(number("daemon.max-connections"));
  daemon.max_memory_bytes = static_cast<std::size_t>(number("daemon.max-memory-mib")) << 20;
  daemon.max_message_bytes = number("daemon.max-message-mib") << 20;
  daemon.max_metadata_bytes = number("daemon.max-metadata-mib") << 20;
  return daemon;
}

ExclusiveRule exclusive_rule(const std::string& value) {
  if (value == "never") return ExclusiveRule::kNever;
  return value == "annotated" ? ExclusiveRule::kAnnotated : ExclusiveRule::kGuaranteedInteger;
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
  placement.rules.when_full = text(values, "placement.when-full") == "share" ? WhenFull::kShare : WhenFull::kDeny;
  placement.rules.annotations = permitted_annotations(list(values, "placement.annotations"));
  placement.rules.crash_hold = *parse_duration(text(values, "placement.crash-hold"));
  placement.rules.memory_migrate = text(values, "placement.memory-migrate") == "true";
  placement.pending_timeout = *parse_duration(text(values, "placement.pending-timeout"));
  placement.start_grace = *parse_duration(text(values, "placement.start-grace"));
  placement.deadline = std::chrono::milliseconds(std::stol(text(values, "placement.deadline-ms")));
  placement.plugin_timeout = *parse_duration(text(values, "placement.plugin-timeout"));
  placement.handlers = list(values, "placement.handlers");
  std::replace(placement.handlers.begin(), placement.handlers.end(), std::string("default"), std::string());
  return placement;
}

PluginOptions plugin_options(const po::variables_map& values, const std::string& plugin,
                             const std::vector<OptionSpec>& specs) {
  PluginOptions options;
  options.name = plugin;
  options.weight = std::stoi(text(values, "plugins.weight." + plugin));
  options.fail_closed = text(values, "plugins.on-failure." + plugin) == "closed";
  options.required = text(values, "plugins.required." + plugin) == "true";
  for (const OptionSpec& spec : specs) {
    if (spec.section == plugin) options.values[spec.key] = text(values, spec.name());
  }
  return options;
}

/// As set by flags, or else by the file, or else by default.
std::vector<std::string> values_of(const OptionSpec& spec, const RawConfig& raw) {
  std::vector<std::string> flags;
  std::vector<std::string> file;
  for (const Setting& setting : raw.settings) {
    if (setting.section + '.' + setting.key == spec.name()) (setting.is_flag() ? flags : file).push_back(setting.value);
  }
  if (!flags.empty()) return flags;
  return file.empty() ? spec.defaults : file;
}

po::options_description general_options() {
  po::options_description general("General", kHelpColumns, kHelpColumns / 2);
  general.add_options()("config", po::value<std::string>()->value_name("FILE")->default_value(kDefaultConfigFile),
                        "The configuration file. It may be missing unless it is named here.")(
      "check-config", "Say all that is wrong with the configuration, and end.")(
      "help", "Explain every option, and end.")("version", "Say which version this is, and end.");
  return general;
}

}  // namespace

PluginChoice plugin_choice(const RawConfig& raw) {
  const OptionSpec enable = core_options({}).back();
  PluginChoice choice;
  choice.plugin_dir = TOPOLET_PLUGIN_DIR;
  bool from_flags = false;
  for (const Setting& setting : raw.settings) {
    if (setting.section == "daemon" && setting.key == "plugin-dir") choice.plugin_dir = setting.value;
    if (setting.section != enable.section || setting.key != enable.key) continue;
    if (setting.is_flag() && !std::exchange(from_flags, true)) choice.enabled.clear();
    if (check_value(enable, setting.value).ok() && !has(choice.enabled, setting.value)) {
      choice.enabled.push_back(setting.value);
    }
  }
  return choice;
}

CheckedConfig check(const RawConfig& raw, const std::vector<PluginSection>& sections) {
  Judge judge(raw, sections);
  const po::variables_map values = judge.judge();
  CheckedConfig checked;
  checked.options.daemon = daemon_options(values);
  checked.options.placement = placement_options(values);
  for (const std::string& plugin : judge.enabled()) {
    checked.options.plugins.push_back(plugin_options(values, plugin, judge.specs()));
  }
  checked.mistakes = judge.take_mistakes();
  return checked;
}

std::map<std::string, std::string> options_of_others(const Options& options, const std::string& plugin) {
  std::map<std::string, std::string> others;
  for (const PluginOptions& other : options.plugins) {
    if (other.name == plugin) continue;
    for (const auto& [name, value] : other.values) others[other.name + '.' + name] = value;
  }
  others["placement.min-shared-cpus"] = std::to_string(options.placement.rules.min_shared_cpus);
  return others;
}

std::vector<std::string> changed_for_restart(const RawConfig& before, const RawConfig& after) {
  std::vector<std::string> changed;
  for (const OptionSpec& spec : core_options({})) {
    const bool reloadable = spec.section == "plugins" || spec.name() == "daemon.log-level";
    if (!reloadable && values_of(spec, before) != values_of(spec, after)) changed.push_back(spec.name());
  }
  return changed;
}

std::string help_text(const std::vector<PluginSection>& sections) {
  po::options_description all(
      "topoletd places containers on CPUs and memory nodes, between the kubelet and the container runtime.\n\n"
      "Usage: topoletd [--config FILE] [--section.key=value]...\n\n"
      "Every key of the configuration file is also an option here, and wins over the file",
      kHelpColumns, kHelpColumns / 2);
  all.add(general_options());
  std::vector<std::string> plugins;
  for (const PluginSection& section : sections) plugins.push_back(section.plugin);
  if (plugins.empty()) plugins.emplace_back("NAME");
  std::vector<OptionSpec> group;
  const std::vector<OptionSpec> specs = all_options(plugins, sections);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    group.push_back(specs[i]);
    if (i + 1 < specs.size() && specs[i + 1].section == specs[i].section) continue;
    all.add(describe(group, "[" + specs[i].section + "]"));
    group.clear();
  }
  std::ostringstream text;
  text << all;
  // Boost leaves the space at which it broke a line.
  return std::regex_replace(text.str(), std::regex(" +\n"), "\n");
}

}  // namespace topolet
