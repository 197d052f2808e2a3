// The options as Boost.Program_options knows them.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <string>
#include <vector>

#include "core/config/option_table.hpp"

namespace topolet::config {

/// The width of the help, in characters.
inline constexpr unsigned kHelpColumns = 100;

/// Describes the options to Boost.Program_options, which owns the values once they are validated.
boost::program_options::options_description describe(const std::vector<OptionSpec>& specs,
                                                     const std::string& caption = "");

}  // namespace topolet::config
