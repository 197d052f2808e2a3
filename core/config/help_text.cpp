#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "core/config/describe_options.hpp"
#include "core/config/options.hpp"

namespace topolet::config {
namespace {

namespace po = boost::program_options;

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
