#include "core/plugin/host/load.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#define BOOST_DLL_USE_STD_FS
#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <optional>

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
/// version that wraps it otherwise is shown as it is.
std::string loader_message(const std::string& what, const std::string& path) {
  const auto begin = what.find(path + ": ");
  if (begin == std::string::npos) return sanitize_text(view_of(what));
  const std::string words = what.substr(begin + path.size() + 2);
  return sanitize_text(view_of(words.substr(0, words.rfind("): "))));
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

Status check_entry(const topolet_plugin_entry& entry, const std::string& name, const std::string& path) {
  if (!TOPOLET_HAS(&entry, abi_draft)) {
    return bad_entry(fmt::format("the {1} of {0} has only {2} bytes", path, TOPOLET_ENTRY_SYMBOL, entry.struct_size));
  }
  if (entry.abi_draft != TOPOLET_ABI_DRAFT) {
    return bad_entry(fmt::format("{} is built for draft {} of the ABI; this topolet loads draft {}; rebuild it", path,
                                 entry.abi_draft, TOPOLET_ABI_DRAFT));
  }
  if (entry.default_weight > TOPOLET_WEIGHT_MAX) {
    return bad_entry(fmt::format("{} has a default_weight of {}; the maximum is {}", path, entry.default_weight,
                                 TOPOLET_WEIGHT_MAX));
  }
  if (!TOPOLET_HAS(&entry, create) || entry.create == nullptr) {
    return bad_entry(fmt::format("{} has no create function in its {}", path, TOPOLET_ENTRY_SYMBOL));
  }
  if (const std::string fault = fault_of_size(entry.struct_size, 0); !fault.empty())
    return bad_entry(fmt::format("the {} of {} {}", TOPOLET_ENTRY_SYMBOL, path, fault));
  if (const std::string fault = fault_of_text(entry.id); !fault.empty())
    return bad_entry(fmt::format("the id of {} {}", path, fault));
  if (entry.id.len == 0) return bad_entry(fmt::format("{} has no id; it is to be the file's name without .so", path));
  if (const std::string fault = fault_of_text(entry.version); !fault.empty())
    return bad_entry(fmt::format("the version of {} {}", path, fault));
  if (const std::string id = sanitize_text(entry.id); id != name) {
    return bad_entry(fmt::format("{} has the id '{}'; its file must be called {}.so", path, id, id));
  }
  return {};
}

Status check_name(const std::string& name) {
  const Status named = config::check_plugin_name(name);
  if (named) return {};
  return refuse(sanitize_text(view_of(name)), Error{named.error().code, sanitize_text(view_of(named.error().message))});
}

using OptionValues = std::vector<std::pair<std::string, std::string>>;

/// One checked value for each option of the table: the given one or the default.
Result<OptionValues> with_defaults(const std::vector<config::OptionSpec>& options, const OptionValues& given) {
  const auto find = [](auto& items, const std::string& name, auto name_of) {
    return std::find_if(items.begin(), items.end(), [&](const auto& item) { return name_of(item) == name; });
  };
  const auto option_name = [](const config::OptionSpec& option) { return option.key; };
  const auto value_name = [](const auto& value) { return value.first; };
  for (const auto& value : given) {
    const auto option = find(options, value.first, option_name);
    if (option == options.end()) return Error{Code::kInvalidArgument, fmt::format("has no option {}", value.first)};
    if (auto checked = check_value(*option, value.second); !checked) {
      return Error{checked.error().code, fmt::format("option {}: {}", value.first, checked.error().message)};
    }
  }
  OptionValues values;
  for (const config::OptionSpec& option : options) {
    const auto value = find(given, option.key, value_name);
    values.emplace_back(option.key, value == given.end() ? option.defaults.front() : value->second);
  }
  return values;
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
    std::shared_ptr<store::PluginStateStore> state, const std::map<std::string, std::string>& others, LentGuard guard,
    std::shared_ptr<const topology::Topology> machine) const {
  auto options = with_defaults(options_, values);
  if (!options) return refuse(id_, options.error());
  auto host = std::make_unique<PluginHost>(id_, std::move(log), std::move(state));
  LentBlock shown({.guard = guard});
  std::optional<AbiTopology> shown_machine;
  if (machine != nullptr) shown_machine.emplace(std::move(machine));
  const auto* request = shown.copy_struct(topolet_create_request{sizeof(topolet_create_request), 0, host->view(),
                                                                 shown.copy_pairs(*options), shown.copy_pairs(others),
                                                                 shown_machine ? &shown_machine->view() : nullptr, 0, 0});
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
    return Error{Code::kInternal, fmt::format("plugin {}: create {}", id_, *thrown)};
  }
  if (status != TOPOLET_OK) {
    const std::string why =
        creation.error.empty() ? fmt::format("no reason given (status {})", status) : creation.error;
    return Error{Code::kInternal, fmt::format("plugin {}: create failed: {}", id_, why)};
  }
  if (instance == nullptr) return Error{Code::kInternal, fmt::format("plugin {}: create returned no instance", id_)};
  auto policy = PluginPolicy::wrap(id_, std::move(host), instance);
  if (policy) (*policy)->speak(abi_minor());
  if (policy && shown.check() != LentState::kIntact) {
    return Error{Code::kInternal,
                 fmt::format("plugin {}: create wrote to memory that it was lent to read (its options)", id_)};
  }
  return policy;
}

}  // namespace topolet::plugin
