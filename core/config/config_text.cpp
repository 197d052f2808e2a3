#include "core/config/config_text.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/base/read_file.hpp"
#include "core/base/text.hpp"

namespace topolet::config {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r";
constexpr std::size_t kMaxConfigBytes = 1 << 20;

/// The line without its comment and the white space around it.
std::string_view without_comment(std::string_view line) {
  line = trimmed(line);
  if (line.substr(0, 1) == ";") return {};
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool begins = i == 0 || kWhiteSpace.find(line[i - 1]) != std::string_view::npos;
    if (line[i] == '#' && begins) return trimmed(line.substr(0, i));
  }
  return line;
}

/// Reads one line; `section` is the one it stands in and may change.
std::optional<std::string> read_line(RawConfig& raw, const std::string& file, std::size_t line,
                                     std::string_view content, std::string& section) {
  const std::string quoted = "'" + std::string(content) + "'";
  if (content.front() == '[') {
    if (content.back() != ']') return quoted + " has no closing ]; write [section]";
    section = trimmed(content.substr(1, content.size() - 2));
    if (section.empty()) return "the section has no name";
    raw.sections.push_back({section, file, line});
    return std::nullopt;
  }
  const auto equals = content.find('=');
  if (equals == std::string_view::npos) return quoted + " has no '='; write key = value";
  const std::string key(trimmed(content.substr(0, equals)));
  if (key.empty()) return quoted + " has no key before '='; write key = value";
  raw.entries.push_back({section, key, std::string(trimmed(content.substr(equals + 1))), file, line});
  return std::nullopt;
}

ConfigEntry entry_of_flag(std::string_view name, std::string_view value) {
  const auto dot = name.find('.');
  if (dot == std::string_view::npos) return {"", std::string(name), std::string(value)};
  return {std::string(name.substr(0, dot)), std::string(name.substr(dot + 1)), std::string(value)};
}

bool* switch_of(RawConfig& raw, std::string_view name) {
  if (name == "help") return &raw.help;
  if (name == "version") return &raw.version;
  if (name == "check-config") return &raw.check_config;
  if (name == "take-over") return &raw.take_over;
  return nullptr;
}

/// Editors and package managers leave files of other names beside those that they change.
bool is_part(std::string_view name) { return name.ends_with(".conf") && !name.starts_with('.'); }

/// Notes which files there are to read besides the main one.
void find_parts(RawConfig& raw, const ListDirectory& list) {
  const std::filesystem::path directory = raw.file.string() + ".d";
  Result<std::vector<std::string>> names = list(directory);
  if (!names) {
    if (names.error().code == Code::kNotFound) return;
    raw.mistakes.push_back({directory.string(), 0, "cannot read the configuration: " + names.error().message});
    return;
  }
  std::sort(names->begin(), names->end());
  for (const std::string& name : *names) {
    (is_part(name) ? raw.files : raw.ignored).push_back((directory / name).string());
  }
}

using OptionName = std::pair<std::string, std::string>;

/// Adds the entries of a file to those of the files before it.
void add_entries(RawConfig& raw, std::vector<ConfigEntry> added) {
  std::set<OptionName> set_again;
  for (const ConfigEntry& entry : added) set_again.insert({entry.section, entry.key});
  const auto stays = [&](const ConfigEntry& entry) { return set_again.count({entry.section, entry.key}) == 0; };
  const auto replaced = std::stable_partition(raw.entries.begin(), raw.entries.end(), stays);
  std::move(replaced, raw.entries.end(), std::back_inserter(raw.replaced));
  raw.entries.erase(replaced, raw.entries.end());
  std::move(added.begin(), added.end(), std::back_inserter(raw.entries));
}

/// Reads the files that are noted. A main file that may be missing, and is, is none of them any more.
void read_files(RawConfig& raw, bool main_must_exist, const ReadFile& read_file) {
  for (const std::string& file : std::exchange(raw.files, {})) {
    const Result<std::string> text = read_file(file);
    const bool is_missed = !text && text.error().code == Code::kNotFound && file == raw.file && !main_must_exist;
    if (is_missed) continue;
    raw.files.push_back(file);
    if (text) {
      RawConfig one;
      read_config_text(one, file, *text);
      std::move(one.sections.begin(), one.sections.end(), std::back_inserter(raw.sections));
      std::move(one.mistakes.begin(), one.mistakes.end(), std::back_inserter(raw.mistakes));
      add_entries(raw, std::move(one.entries));
    } else {
      raw.mistakes.push_back({file, 0, "cannot read the configuration: " + text.error().message});
    }
  }
}

/// Reads the arguments into `raw`. True if they name a config file.
bool read_arguments(RawConfig& raw, const std::vector<std::string>& arguments) {
  bool names_file = false;
  const auto mistake = [&raw](std::string message) { raw.mistakes.push_back({"", 0, std::move(message)}); };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "-h") {
      raw.help = true;
      continue;
    }
    if (argument.substr(0, 2) != "--" || argument.size() == 2) {
      mistake("unexpected argument '" + arguments[i] + "'; options are written --section.key=value");
      continue;
    }
    const auto equals = argument.find('=');
    const std::string name(argument.substr(2, equals == std::string_view::npos ? equals : equals - 2));
    std::optional<std::string> value;
    if (equals != std::string_view::npos) value = argument.substr(equals + 1);
    if (bool* flag = switch_of(raw, name)) {
      *flag = true;
      if (value) mistake("--" + name + " takes no value");
      continue;
    }
    const bool next_is_value = i + 1 < arguments.size() && arguments[i + 1].substr(0, 2) != "--";
    if (!value && next_is_value) value = arguments[++i];
    if (!value) {
      mistake("--" + name + " needs a value; write --" + name + "=VALUE");
    } else if (name == "config") {
      raw.file = *value;
      names_file = true;
    } else {
      raw.entries.push_back(entry_of_flag(name, *value));
    }
  }
  return names_file;
}

}  // namespace

std::string ConfigMistake::to_string() const {
  if (file.empty()) return "command line: " + message;
  std::string text = file;
  if (line != 0) text.append(":").append(std::to_string(line));
  return text.append(": ").append(message);
}

Result<std::string> read_text_file(const std::filesystem::path& file) {
  Result<std::string> text = read_file(file, kMaxConfigBytes);
  if (text || text.error().code != Code::kResourceExhausted) return text;
  return Error{Code::kInvalidArgument, text.error().message + ", which no configuration needs"};
}

Result<std::vector<std::string>> list_directory(const std::filesystem::path& directory) {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator at(directory, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  if (!error) return names;
  // A link to nowhere is meant to be something.
  std::error_code ignored;
  const bool is_link = std::filesystem::is_symlink(std::filesystem::symlink_status(directory, ignored));
  if (is_link) return Error{Code::kUnavailable, error.message()};
  return Error{error == std::errc::no_such_file_or_directory ? Code::kNotFound : Code::kUnavailable, error.message()};
}

RawConfig read_raw(const std::vector<std::string>& arguments, const ReadFile& read_file, const ListDirectory& list) {
  RawConfig raw;
  const bool names_file = read_arguments(raw, arguments);
  std::vector<ConfigEntry> flags = std::exchange(raw.entries, {});
  raw.files = {raw.file.string()};
  find_parts(raw, list);
  const bool has_parts = raw.files.size() > 1;
  read_files(raw, /*main_must_exist=*/names_file && !has_parts, read_file);
  std::move(flags.begin(), flags.end(), std::back_inserter(raw.entries));
  return raw;
}

std::vector<ConfigEntry> entries_in_force(const RawConfig& raw) {
  std::set<OptionName> flags;
  for (const ConfigEntry& entry : raw.entries) {
    if (entry.is_flag()) flags.insert({entry.section, entry.key});
  }
  std::vector<ConfigEntry> in_force;
  std::copy_if(raw.entries.begin(), raw.entries.end(), std::back_inserter(in_force),
               [&flags](const ConfigEntry& entry) {
                 return entry.is_flag() || flags.count({entry.section, entry.key}) == 0;
               });
  return in_force;
}

void sort_by_place(const RawConfig& raw, std::vector<ConfigMistake>& mistakes) {
  const auto place = [&raw](const ConfigMistake& mistake) {
    const auto file = std::find(raw.files.begin(), raw.files.end(), mistake.file);
    // Mistakes in a default count as in the main file, which may be missing.
    return std::make_tuple(mistake.file.empty(), mistake.file != raw.file, file - raw.files.begin(), mistake.line);
  };
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [&](const ConfigMistake& a, const ConfigMistake& b) { return place(a) < place(b); });
}

void read_config_text(RawConfig& raw, const std::string& file, std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  std::string section;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const auto end = text.find('\n');
    const std::string_view content = without_comment(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (content.empty()) continue;
    if (content.find('\0') != std::string_view::npos) {
      raw.mistakes.push_back({file, line, "the line has a NUL byte in it; write the file as UTF-8 text"});
      continue;
    }
    if (auto wrong = read_line(raw, file, line, content, section)) {
      raw.mistakes.push_back({file, line, *std::move(wrong)});
    }
  }
}

}  // namespace topolet::config
