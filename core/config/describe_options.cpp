#include "core/config/describe_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/make_shared.hpp>
#include <regex>
#include <sstream>

#include "core/config/options.hpp"

namespace topolet::config {
namespace {

namespace po = boost::program_options;

constexpr unsigned kHelpColumns = 100;

const char* value_name(const OptionSpec& spec) {
  switch (spec.type) {
    case OptionType::kBool:
      return "BOOL";
    case OptionType::kInt:
      return "NUMBER";
    case OptionType::kFloat:
      return "NUMBER";
    case OptionType::kDuration:
      return "DURATION";
    case OptionType::kSize:
      return "BYTES";
    case OptionType::kList:
      return "LIST";
    case OptionType::kCpus:
      return "CPUS";
    case OptionType::kSocket:
      return "SOCKET";
    case OptionType::kPath:
      return "PATH";
    case OptionType::kName:
    case OptionType::kNamespace:
    case OptionType::kNamespaces:
    case OptionType::kHandler:
    case OptionType::kHandlers:
    case OptionType::kNodeName:
      return "NAME";
    case OptionType::kString:
    case OptionType::kWord:
      return "WORD";
  }
  return "VALUE";
}

/// The defaults as people read them.
std::string shown_defaults(const OptionSpec& spec) {
  return spec.defaults.empty() ? "none" : shown_values(spec, spec.defaults);
}

const po::value_semantic* semantic(const OptionSpec& spec) {
  if (spec.repeatable) {
    auto* values = po::value<std::vector<std::string>>()->composing()->value_name(value_name(spec));
    return spec.required ? values : values->default_value(spec.defaults, shown_defaults(spec));
  }
  auto* value = po::value<std::string>()->value_name(value_name(spec));
  return spec.required ? value : value->default_value(spec.defaults.front(), shown_defaults(spec));
}

std::string explanation(const OptionSpec& spec) {
  std::string text = spec.help;
  if (!spec.allowed.empty() && spec.type != OptionType::kCpus && spec.type != OptionType::kPath)
    text += std::string(spec.type == OptionType::kList ? " Any of: " : " One of: ") +
            fmt::format("{}", fmt::join(spec.allowed, ", ")) + ".";
  if (spec.repeatable) text += " May be given several times.";
  if (spec.required) text += " Required.";
  return text;
}

po::options_description command_line_options() {
  po::options_description general("General", kHelpColumns, kHelpColumns / 2);
  general.add_options()(
      "config", po::value<std::string>()->value_name("FILE")->default_value(kDefaultConfigFile),
      "The configuration file. It, or a part of it, must exist if it is given here. Its parts are the files "
      "FILE.d/*.conf: of a key that several of them have, what the last one says counts.")(
      "check-config", "Report every mistake in the configuration, and exit.")(
      "take-over",
      "Take the place of the topoletd that runs with the same sockets and state directory, without failing a call; if "
      "none does, start as usual.")("help,h", "Explain every option, and exit.")("version",
                                                                                 "Print the version, and exit.");
  return general;
}

/// "[numa]", with what the plugin says of itself.
std::string caption_of(const std::string& section, const std::vector<PluginSection>& plugins) {
  for (const PluginSection& plugin : plugins) {
    if (plugin.plugin == section && !plugin.description.empty())
      return "[" + section + "] " + plugin.description.substr(0, kHelpColumns - section.size() - 4);
  }
  return "[" + section + "]";
}

}  // namespace

po::options_description describe(const std::vector<OptionSpec>& specs, const std::string& caption) {
  po::options_description description(caption, kHelpColumns, kHelpColumns / 2);
  for (const OptionSpec& spec : specs) {
    description.add(
        boost::make_shared<po::option_description>(spec.name().c_str(), semantic(spec), explanation(spec).c_str()));
  }
  return description;
}

std::string help_text(const std::vector<PluginSection>& sections) {
  po::options_description all(
      "topoletd places containers on CPUs and memory nodes, between the kubelet and the container runtime.\n\n"
      "Usage: topoletd [--config FILE] [--section.key=value]...\n\n"
      "Every key of the configuration file is also an option here, which overrides the file and its parts",
      kHelpColumns, kHelpColumns / 2);
  all.add(command_line_options());
  std::vector<std::string> plugins;
  for (const PluginSection& section : sections) plugins.push_back(section.plugin);
  if (plugins.empty()) plugins.emplace_back("NAME");
  std::vector<OptionSpec> group;
  const std::vector<OptionSpec> specs = all_options(plugins, sections);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    group.push_back(specs[i]);
    if (i + 1 < specs.size() && specs[i + 1].section == specs[i].section) continue;
    all.add(describe(group, caption_of(specs[i].section, sections)));
    group.clear();
  }
  std::ostringstream text;
  text << all;
  // Boost leaves the space at which it broke a line.
  return std::regex_replace(text.str(), std::regex(" +\n"), "\n");
}

}  // namespace topolet::config
