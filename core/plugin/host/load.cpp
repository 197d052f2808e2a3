#include "core/plugin/host/load.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#define BOOST_DLL_USE_STD_FS
#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <optional>

#include "core/base/log.hpp"
#include "core/plugin/call/abi_request.hpp"
#include "core/plugin/call/sink_replies.hpp"
#include "core/plugin/guard/barrier.hpp"
#include "core/plugin/guard/crash_mark.hpp"
#include "core/plugin/guard/lent_block.hpp"
#include "core/plugin/guard/plugin_tables.hpp"
#include "core/plugin/host/resolve_plugin_file.hpp"

namespace topolet::plugin {
namespace {

namespace dll = boost::dll;

Error refuse(const std::string& name, const Error& why) {
  return {why.code, fmt::format("plugin {}: {}", name, why.message)};
}

Error refuse(const std::string& name, std::string why) {
  return {Code::kFailedPrecondition, fmt::format("plugin {}: {}", name, why)};
}

/// Returns dlerror's message. Boost 1.74 wraps it: "… (dlerror system message: PATH: WORDS): Bad file descriptor"; a
/// version that wraps it otherwise is shown as it is. A library that is not there is named first: "NAME: cannot open
/// shared object file: No such file or directory".
std::string loader_message(const std::string& what, const std::string& path) {
  constexpr std::string_view kMessage = "dlerror system message: ";
  constexpr std::string_view kCannotOpen = ": cannot open shared object file: ";
  const auto begin = what.find(kMessage);
  const std::string words = begin == std::string::npos ? what : what.substr(begin + kMessage.size());
  if (const auto name_end = words.find(kCannotOpen); name_end != std::string::npos && !words.starts_with(path)) {
    const std::string why = words.substr(name_end + kCannotOpen.size());
    return sanitize_text(
        view_of(fmt::format("it is linked to the library {}, which the loader cannot open here ({}); install that "
                            "library, or link what the "
                            "plugin needs into it statically",
                            words.substr(0, name_end), why.substr(0, why.rfind("): ")))));
  }
  const auto after_path = what.find(path + ": ");
  if (after_path == std::string::npos) return sanitize_text(view_of(what));
  const std::string rest = what.substr(after_path + path.size() + 2);
  return sanitize_text(view_of(rest.substr(0, rest.rfind("): "))));
}

/// RTLD_NODELETE keeps the library mapped when the handle goes: what it left behind (thread-locals, exit handlers,
/// an abandoned call) may still run its code.
Result<dll::shared_library> open_library(const std::filesystem::path& path) {
  const auto mode =
      dll::load_mode::rtld_now | dll::load_mode::rtld_local | static_cast<dll::load_mode::type>(RTLD_NODELETE);
  std::optional<dll::shared_library> library;
  std::string why;
  try {
    library.emplace(path, mode);
    return *library;
  } catch (const std::exception& exception) {
    why = loader_message(exception.what(), path.native());
  } catch (...) {
    why = "one of its constructors threw";
  }
  return Error{Code::kFailedPrecondition, fmt::format("cannot load {}: {}", path.native(), why)};
}

/// Also true of a library that was refused after it was opened. The loader goes by the path: it will not see that
/// another file has taken its place.
bool is_mapped(const std::filesystem::path& path) {
  void* const handle = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  ::dlclose(handle);
  return true;
}

/// A plugin of another major has the same symbol under another number.
std::string missing_symbol(const dll::shared_library& library, const std::string& path) {
  for (int major = 2; major < 10; ++major) {
    if (library.has(fmt::format("topolet_plugin_v{}", major))) {
      return fmt::format("{} is built for ABI major {}; this topolet loads major 1", path, major);
    }
  }
  return fmt::format("{} does not export {}", path, TOPOLET_ENTRY_SYMBOL);
}

Error bad_entry(std::string why) { return {Code::kFailedPrecondition, std::move(why)}; }

/// Says what to do about a plugin of another draft.
std::string other_draft(std::uint32_t draft, const std::string& path) {
  const std::string what =
      fmt::format("{} is built for draft {} of the ABI; this topolet loads draft {}", path, draft, TOPOLET_ABI_DRAFT);
  if (draft == 0 || draft > TOPOLET_ABI_DRAFT)
    return what + "; it is newer than this topolet: update topolet, or build the plugin with the SDK of this one";
  return fmt::format(
      "{}; rebuild it with the SDK of this topolet, topolet-sdk 0.9.{} (package topolet-dev): the end of its ABI.md "
      "says what has changed; find_package(topolet-sdk 0.9.{} REQUIRED), or pkg-config topolet-sdk, finds it",
      what, TOPOLET_ABI_DRAFT, TOPOLET_ABI_DRAFT);
}

/// Returns an appended text of the entry; empty where the entry ends before it.
topolet_str appended_text(const topolet_plugin_entry& entry, topolet_str topolet_plugin_entry::*text) {
  const auto end = reinterpret_cast<const char*>(&(entry.*text) + 1) - reinterpret_cast<const char*>(&entry);
  return end <= entry.struct_size ? entry.*text : topolet_str{nullptr, 0};
}

Status check_texts(const topolet_plugin_entry& entry, const std::string& path) {
  const std::pair<const char*, topolet_str> texts[] = {
      {"id", entry.id},
      {"version", entry.version},
      {"vendor", appended_text(entry, &topolet_plugin_entry::vendor)},
      {"url", appended_text(entry, &topolet_plugin_entry::url)},
      {"description", appended_text(entry, &topolet_plugin_entry::description)}};
  for (const auto& [name, text] : texts) {
    if (const std::string fault = fault_of_text(text); !fault.empty())
      return bad_entry(fmt::format("the {} of {} {}", name, path, fault));
  }
  return {};
}

/// One name is kept for a plugin of topolet's own.
Status check_vendor(const std::string& id, const topolet_plugin_entry& entry) {
  constexpr const char* kOwnPlugin = "load";
  constexpr const char* kOwnVendor = "topolet";
  if (id != kOwnPlugin || sanitize_text(appended_text(entry, &topolet_plugin_entry::vendor)) == kOwnVendor) return {};
  return bad_entry(
      fmt::format("the id '{}' is reserved for the plugin of that name that comes with topolet; give the plugin and "
                  "its file another "
                  "name",
                  id));
}

Status check_entry(const topolet_plugin_entry& entry, const std::string& name, const std::string& path) {
  if (!TOPOLET_HAS(&entry, abi_draft)) {
    return bad_entry(fmt::format("the {1} of {0} has only {2} bytes", path, TOPOLET_ENTRY_SYMBOL, entry.struct_size));
  }
  if (entry.abi_draft != TOPOLET_ABI_DRAFT) return bad_entry(other_draft(entry.abi_draft, path));
  if (entry.default_weight > TOPOLET_WEIGHT_MAX) {
    return bad_entry(fmt::format("{} has a default_weight of {}; the maximum is {}", path, entry.default_weight,
                                 TOPOLET_WEIGHT_MAX));
  }
  if (!TOPOLET_HAS(&entry, create) || entry.create == nullptr) {
    return bad_entry(fmt::format("{} has no create function in its {}", path, TOPOLET_ENTRY_SYMBOL));
  }
  if (const std::string fault = fault_of_size(entry.struct_size, 0); !fault.empty())
    return bad_entry(fmt::format("the {} of {} {}", TOPOLET_ENTRY_SYMBOL, path, fault));
  if (const Status texts = check_texts(entry, path); !texts) return texts;
  if (entry.id.len == 0) return bad_entry(fmt::format("{} has no id; it is to be the file's name without .so", path));
  if (const std::string id = sanitize_text(entry.id); id != name) {
    return bad_entry(fmt::format("{} has the id '{}'; its file must be called {}.so", path, id, id));
  }
  return check_vendor(name, entry);
}

Status check_name(const std::string& name) {
  const Status named = config::check_plugin_name(name);
  if (named) return {};
  return refuse(sanitize_text(view_of(name)), Error{named.error().code, sanitize_text(view_of(named.error().message))});
}

using OptionValues = std::vector<std::pair<std::string, std::string>>;

/// Checks the values that are given.
Status check_values(const std::vector<config::OptionSpec>& options, const OptionValues& given) {
  for (const auto& [name, value] : given) {
    const auto option =
        std::find_if(options.begin(), options.end(), [&key = name](const auto& known) { return known.key == key; });
    if (option == options.end()) return Error{Code::kInvalidArgument, fmt::format("has no option {}", name)};
    if (auto checked = check_value(*option, value); !checked)
      return Error{checked.error().code, fmt::format("option {}: {}", name, checked.error().message)};
  }
  return {};
}

/// Returns the checked values as the plugin is given them, in the order of the table: those that are given, or the
/// defaults.
Result<OptionValues> with_defaults(const std::vector<config::OptionSpec>& options, const OptionValues& given) {
  if (const Status fit = check_values(options, given); !fit) return fit.error();
  OptionValues values;
  for (const config::OptionSpec& option : options) {
    const std::size_t before = values.size();
    for (const auto& [name, value] : given) {
      if (name == option.key && (option.repeatable || values.size() == before))
        values.emplace_back(name, plain_value(option, value));
    }
    if (values.size() > before) continue;
    if (option.required)
      return Error{Code::kInvalidArgument, fmt::format("option {} is required, and not given", option.key)};
    for (const std::string& value : option.defaults) values.emplace_back(option.key, plain_value(option, value));
  }
  return values;
}

/// Returns the text without the values of secret options: a plugin may quote what it cannot use.
std::string hide_secrets(std::string text, const std::vector<config::OptionSpec>& options, const OptionValues& values) {
  for (const auto& [name, value] : values) {
    const bool is_secret = std::any_of(options.begin(), options.end(), [&key = name](const auto& option) {
      return option.key == key && option.secret;
    });
    if (!is_secret || value.empty()) continue;
    for (auto at = text.find(value); at != std::string::npos; at = text.find(value, at + 3))
      text.replace(at, value.size(), config::kHiddenValue);
  }
  return text;
}

}  // namespace

Result<PluginLibrary> PluginLibrary::load(const std::filesystem::path& plugin_dir, const std::string& name) {
  if (const Status named = check_name(name); !named) return named.error();
  return load_resolved(resolve_plugin_file(plugin_dir, name), name);
}

Result<PluginLibrary> PluginLibrary::load_file(const std::filesystem::path& file) {
  if (file.extension() != ".so")
    return Error{Code::kInvalidArgument, fmt::format("{}: a plugin's file is called NAME.so", file.native())};
  const std::string name = file.stem().native();
  if (const Status named = check_name(name); !named) return named.error();
  return load_resolved(resolve_any_plugin_file(file), name);
}

Result<PluginLibrary> PluginLibrary::load_resolved(const Result<std::filesystem::path>& path, const std::string& name) {
  if (!path) return refuse(name, path.error());
  // Read before the file is opened, so that a file that is replaced in between counts as changed.
  const FileIdentity file = FileIdentity::of(*path);
  const bool mapped_before = is_mapped(*path);
  const CrashStack stack;
  auto opened = [&] {
    const CrashMark mark(name.c_str(), "load");
    return open_library(*path);
  }();
  if (!opened) return refuse(name, opened.error());
  register_code_of(name, opened->native());
  PluginLibrary library;
  library.id_ = name;
  library.path_ = *path;
  library.file_ = file;
  if (Status read = library.read(*opened); !read) {
    if (!mapped_before) return refuse(name, read.error());
    return refuse(name, read.error().message +
                            "; it was like this when it was first loaded, and a loaded library stays "
                            "until topoletd ends: restart topoletd if the file was replaced since");
  }
  return library;
}

Status PluginLibrary::read(const boost::dll::shared_library& library) {
  if (!library.has(TOPOLET_ENTRY_SYMBOL)) {
    return Error{Code::kFailedPrecondition, missing_symbol(library, path_.native())};
  }
  entry_ = &library.get<const topolet_plugin_entry>(TOPOLET_ENTRY_SYMBOL);
  if (auto checked = check_entry(*entry_, id_, path_.native()); !checked) return checked;
  version_ = sanitize_text(entry_->version);
  vendor_ = sanitize_text(appended_text(*entry_, &topolet_plugin_entry::vendor));
  url_ = sanitize_text(appended_text(*entry_, &topolet_plugin_entry::url));
  description_ = sanitize_text(appended_text(*entry_, &topolet_plugin_entry::description));
  auto options = read_option_table(*entry_, id_);
  if (!options) return options.error();
  options_ = *std::move(options);
  return {};
}

std::uint32_t PluginLibrary::abi_minor() const { return entry_->abi_minor; }
std::uint32_t PluginLibrary::default_weight() const {
  return entry_->default_weight == 0 ? 1 : entry_->default_weight;  //
}
std::uint32_t PluginLibrary::abi_draft() const { return entry_->abi_draft; }
bool PluginLibrary::file_has_changed() const { return FileIdentity::of(path_) != file_; }

Result<std::shared_ptr<PluginPolicy>> PluginLibrary::create(
    const std::vector<std::pair<std::string, std::string>>& values, std::shared_ptr<Log> log,
    CreateContext context) const {
  auto options = with_defaults(options_, values);
  if (!options) return refuse(id_, options.error());
  auto host = std::make_unique<PluginHost>(id_, log, std::move(context.state));
  LentBlock shown({.guard = context.guard});
  std::optional<AbiTopology> shown_machine;
  const KnownValues known(*context.values, abi_minor());
  if (context.machine != nullptr) shown_machine.emplace(std::move(context.machine), known);
  const topolet_kvs shown_options = shown.copy_pairs(*options);
  const topolet_kvs configuration = shown.copy_pairs(context.configuration);
  const auto* request = shown.copy_struct(topolet_create_request{
      sizeof(topolet_create_request), known.shown(AbiValues::kPurpose, context.purpose), host->view(), shown_options,
      configuration, shown_machine ? &shown_machine->view() : nullptr,
      static_cast<std::uint32_t>(context.deadline.count()), 0});
  shown.seal();
  CreateReply creation{{host->call_abandoned()}};
  const topolet_error_sink* const sink = host->sinks().of(creation);
  const topolet_instance* instance = nullptr;
  std::int32_t status = TOPOLET_FAILED;
  const CrashStack stack;
  const CrashMark mark(id_.c_str(), "create");
  const auto call = [&] {
    const PluginHost::StateWriteScope writing(*host);
    const ReplyScope<CreateReply> scope(creation);
    status = entry_->create(request, sink, &instance);
  };
  if (const auto thrown = thrown_by(call)) {
    return Error{Code::kInternal, fmt::format("plugin {}: create {}", id_, hide_secrets(*thrown, options_, *options))};
  }
  if (status != TOPOLET_OK) {
    const std::string why = creation.error.empty() ? fmt::format("no reason given (status {})", status)
                                                   : hide_secrets(creation.error, options_, *options);
    return Error{Code::kInternal, fmt::format("plugin {}: create failed: {}", id_, why)};
  }
  if (instance == nullptr) return Error{Code::kInternal, fmt::format("plugin {}: create returned no instance", id_)};
  auto policy = PluginPolicy::wrap(id_, std::move(host), instance);
  if (!policy) return policy;
  (*policy)->speak(known);
  if (shown.check() != LentState::kIntact) {
    return Error{Code::kInternal,
                 fmt::format("plugin {}: create wrote to memory that it was lent to read (its options)", id_)};
  }
  if (const std::string warning = deprecation_warning(**policy, *context.deprecated); !warning.empty())
    log->warn("{}", warning);
  return policy;
}

}  // namespace topolet::plugin
