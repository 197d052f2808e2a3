#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cli/command.hpp"
#include "core/cli/output.hpp"
#include "core/cli/templates.hpp"
#include "core/config/option_table.hpp"

namespace topolet::cli {
namespace {

namespace fs = std::filesystem;

struct Template {
  const char* file;
  const char* text;
};
constexpr std::array<Template, 4> kTemplates = {{{"CMakeLists.txt", kTemplateCmake},
                                                 {"policy_test.cpp", kTemplateTest},
                                                 {"README.md", kTemplateReadme},
                                                 {"workload.jsonl", kTemplateWorkload}}};
/// The policy itself, and the languages that CMake has to know for it and its test.
struct Language {
  Template policy;
  const char* cmake_languages;
};
constexpr Language kCpp = {{"policy.cpp", kTemplatePolicy}, "CXX"};
constexpr Language kC = {{"policy.c", kTemplatePolicyInC}, "C CXX"};
/// CMake has a target of this name in every project with tests.
constexpr std::string_view kTakenByCmake = "test";

std::string replaced(std::string text, std::string_view what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string filled_in(const char* text, const std::string& name, const Language& language) {
  std::string filled = replaced(text, "__NAME__", name);
  filled = replaced(std::move(filled), "__CLASS__", replaced(name, "-", "_"));
  filled = replaced(std::move(filled), "__SOURCE__", language.policy.file);
  return replaced(std::move(filled), "__LANGUAGES__", language.cmake_languages);
}

Status check_name(const std::string& name) {
  const config::OptionSpec spec{
      .section = "plugins", .key = "enable", .type = config::OptionType::kName, .defaults = {}};
  if (const Status fits = check_value(spec, name); !fits) return Error{Code::kInvalidArgument, fits.error().message};
  const auto* const shipped = std::find(kShippedPlugins.begin(), kShippedPlugins.end(), name);
  if (shipped != kShippedPlugins.end()) {
    return Error{Code::kInvalidArgument,
                 fmt::format("'{0}' is the name of a plugin that comes with topolet, and both would be {0}.so; choose "
                             "another",
                             name)};
  }
  if (name != kTakenByCmake && name.size() <= 64) return {};
  return Error{Code::kInvalidArgument, fmt::format("'{}' cannot be the name of a CMake target; choose another", name)};
}

/// Fails where a file is already.
Status write(const fs::path& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wxe");
  if (file == nullptr) {
    return Error{Code::kFailedPrecondition, fmt::format("cannot write {}: {}", path.string(), std::strerror(errno))};
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && written) return {};
  return Error{Code::kFailedPrecondition, fmt::format("cannot write all of {}", path.string())};
}

}  // namespace

void declare_new_plugin(Options& options) { options.add_options()("c", "In C11, instead of C++20."); }

Status new_plugin(const Invocation& invocation) {
  const std::string& name = invocation.arguments[0];
  if (Status fits = check_name(name); !fits) return fits;
  const fs::path directory = invocation.arguments.size() > 1 ? invocation.arguments[1] : name;
  std::error_code error;
  if (fs::exists(directory, error) && !fs::is_empty(directory, error)) {
    return Error{Code::kAlreadyExists, fmt::format("{} exists and is not empty; nothing is overwritten. Choose another "
                                                   "directory: topolet plugin new {} DIR",
                                                   directory.string(), name)};
  }
  fs::create_directories(directory, error);
  if (error) {
    return Error{Code::kFailedPrecondition, fmt::format("cannot create {}: {}", directory.string(), error.message())};
  }
  const Language& language = invocation.has("c") ? kC : kCpp;
  std::vector<Template> files(kTemplates.begin(), kTemplates.end());
  files.push_back(language.policy);
  for (const Template& one : files) {
    if (Status written = write(directory / one.file, filled_in(one.text, name, language)); !written) return written;
  }
  print_line(fmt::format("created {}; build and test it with", directory.string()));
  print_line(fmt::format("  cmake -S {0} -B {0}/build && cmake --build {0}/build && ctest --test-dir {0}/build",
                         directory.string()));
  print_line("and see it decide, on any machine, with");
  print_line(
      fmt::format("  topolet simulate --topology \"pack:2 numa:1 core:4 pu:2\" --plugin {0}/build/{1}.so --workload "
                  "{0}/workload.jsonl --explain",
                  directory.string(), name));
  return {};
}

}  // namespace topolet::cli
