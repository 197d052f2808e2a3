#include "core/config/describe_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/make_shared.hpp>

namespace topolet::config {
namespace {

namespace po = boost::program_options;

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

}  // namespace

po::options_description describe(const std::vector<OptionSpec>& specs, const std::string& caption) {
  po::options_description description(caption, kHelpColumns, kHelpColumns / 2);
  for (const OptionSpec& spec : specs) {
    description.add(
        boost::make_shared<po::option_description>(spec.name().c_str(), semantic(spec), explanation(spec).c_str()));
  }
  return description;
}

}  // namespace topolet::config
