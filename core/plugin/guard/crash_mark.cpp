#include "core/plugin/guard/crash_mark.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <utility>

#include "core/base/forked_child.hpp"
#include "core/plugin/guard/lent_pages.hpp"

/// The function behind pthread_atfork(), which takes back a program's handlers before the destructors of libraries run.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the C library's
extern "C" int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void* of_library);

namespace topolet::plugin {
namespace {

struct PluginCall {
  const char* plugin;
  const char* call;
};
constinit thread_local PluginCall t_plugin_call{nullptr, nullptr};
constinit thread_local bool t_is_hosts = false;
std::atomic<bool> g_handlers_installed = false;
std::atomic<int> g_crash_fd = -1;
std::atomic<const char*> g_program = "topoletd";

constexpr std::array<std::pair<int, const char*>, 5> kSignals = {
    {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"}, {SIGFPE, "SIGFPE"}, {SIGABRT, "SIGABRT"}}};

/// A line of text that is put together without allocating, as a signal handler must.
class SignalSafeLine {
 public:
  SignalSafeLine& add(const char* text) {
    while (*text != '\0' && size_ < text_.size() - 1) text_[size_++] = *text++;
    return *this;
  }
  SignalSafeLine& add(std::int64_t number) {
    std::array<char, 21> digits{};
    std::size_t at = digits.size() - 1;
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    return add(&digits[at]);
  }
  void write_to(int fd) {
    text_[size_++] = '\n';
    [[maybe_unused]] const ssize_t written = ::write(fd, text_.data(), size_);
  }

 private:
  std::array<char, 256> text_{};
  std::size_t size_ = 0;
};

/// The range in which the code of plugins lies. Only ever appended to, under a lock that the crash handler does not
/// need.
struct CodeRange {
  std::array<char, 65> plugin;
  std::uintptr_t begin;
  std::uintptr_t end;
};
std::array<CodeRange, 64> g_code_ranges;
std::atomic<std::size_t> g_code_range_count = 0;
std::mutex g_code_mutex;

const char* owner_of(std::uintptr_t address) {
  const std::size_t count = g_code_range_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (address >= g_code_ranges[i].begin && address < g_code_ranges[i].end) return g_code_ranges[i].plugin.data();
  }
  return nullptr;
}

struct Registers {
  std::uintptr_t instruction = 0;
  std::uintptr_t stack = 0;
};

Registers registers_in(const void* context) {
  [[maybe_unused]] const mcontext_t& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return {static_cast<std::uintptr_t>(machine.gregs[REG_RIP]), static_cast<std::uintptr_t>(machine.gregs[REG_RSP])};
#elif defined(__aarch64__)
  return {machine.pc, machine.sp};
#else
  return {};
#endif
}

Registers registers_here() {
  return {0, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))};  // NOLINT
}

/// Looks for return addresses on the stack, from its top on. The kernel copies, as it knows where the stack ends.
const char* owner_on_stack(std::uintptr_t stack) {
  constexpr std::size_t kChunk = 1024;
  constexpr std::size_t kFarthest = 256 << 10;
  std::array<std::uintptr_t, kChunk / sizeof(std::uintptr_t)> words{};
  const std::uintptr_t begin = stack / kChunk * kChunk;
  for (std::uintptr_t at = begin; at - begin < kFarthest; at += kChunk) {
    iovec to{words.data(), kChunk};
    iovec from{reinterpret_cast<void*>(at), kChunk};  // NOLINT
    if (::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(kChunk)) return nullptr;
    for (const std::uintptr_t word : words) {
      if (const char* plugin = owner_of(word); plugin != nullptr) return plugin;
    }
  }
  return nullptr;
}

/// Returns the plugin that this thread is in. Threads of the host have a mark that tells it; on others, such as a
/// plugin may have started, their functions tell it.
PluginCall current_plugin_call(const Registers& registers) {
  if (t_plugin_call.plugin != nullptr || t_is_hosts || ::gettid() == ::getpid()) return t_plugin_call;
  const char* plugin = owner_of(registers.instruction);
  if (plugin == nullptr) plugin = owner_on_stack(registers.stack);
  return {plugin, kOwnThread};
}

/// `info`: of a signal that the kernel sent.
const char* name_of_crash(int signal, const siginfo_t& info) {
  if (signal == SIGSEGV && info.si_code == SEGV_ACCERR && is_read_only_lent(info.si_addr)) return kLentMemoryCrash;
  for (const auto& [number, name] : kSignals) {
    if (number == signal) return name;
  }
  return "signal";
}

std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

void write_crash_line(const PluginCall& inside, const char* how) {
  const int crash_fd = g_crash_fd.load();
  if (crash_fd >= 0) {
    SignalSafeLine()
        .add("! ")
        .add(now_ms())
        .add(" ")
        .add(inside.plugin)
        .add(" ")
        .add(how)
        .add(" ")
        .add(inside.call)
        .write_to(crash_fd);
  }
  SignalSafeLine()
      .add(g_program)
      .add(" crashes: ")
      .add(describe_crash(how))
      .add(" in ")
      .add(inside.call)
      .add(inside.call == kOwnThread ? " of plugin " : "() of plugin ")
      .add(inside.plugin)
      .write_to(STDERR_FILENO);
}

/// Async-signal-safe, as all that it calls.
void on_crash(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  // The kernel's own faults have a positive code; abort() signals the process itself.
  const bool raised = info->si_code <= 0;
  if (!raised && (signal == SIGSEGV || signal == SIGBUS)) leave_faulty_access();
  if (!raised && signal == SIGSEGV && info->si_code == SEGV_ACCERR && note_write_to_lent(info->si_addr)) {
    errno = error;
    return;
  }
  const bool own = (!raised || info->si_pid == ::getpid()) && !is_forked_child();
  if (own) {
    const PluginCall inside = current_plugin_call(registers_in(context));
    if (inside.plugin != nullptr) write_crash_line(inside, name_of_crash(signal, *info));
  }
  struct sigaction default_action {};
  default_action.sa_handler = SIG_DFL;
  ::sigaction(signal, &default_action, nullptr);
  // A fault happens again on return; a signal that was sent does not.
  if (raised) ::raise(signal);
  errno = error;
}

void handle_crash(int signal) {
  struct sigaction action {};
  action.sa_sigaction = &on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

/// The threads that serve still run, so that nothing may be destroyed under them.
void on_exit_called() {
  if (is_forked_child()) return;
  const PluginCall inside = current_plugin_call(registers_here());
  if (inside.plugin == nullptr) return;
  write_crash_line(inside, "exit");
  ::_exit(EXIT_FAILURE);
}

/// A child would keep the sockets and the lock of the state directory, and no daemon could follow this one.
void on_fork_in_child() { ::close_range(STDERR_FILENO + 1, ~0U, 0); }

std::atomic<bool> g_process_ends = false;

void note_end_of_process() { g_process_ends = true; }

/// Nobody sees a child come back from a destructor or an exit handler of a library: it would run the others, too.
void end_child_of_ending_process() {
  if (!g_process_ends) return;
  if (const char* plugin = owner_on_stack(registers_here().stack); plugin != nullptr) {
    SignalSafeLine()
        .add("plugin ")
        .add(plugin)
        .add(" forked a process when its program ended; that process is ended at once")
        .write_to(STDERR_FILENO);
  }
  ::_exit(EXIT_FAILURE);
}

/// Exit handlers run in the reverse order, so that this one runs before those of the libraries loaded so far.
void watch_end_of_process() {
  static std::once_flag g_once;
  std::call_once(
      g_once, [] { static_cast<void>(::__register_atfork(nullptr, nullptr, &end_child_of_ending_process, nullptr)); });
  static_cast<void>(std::atexit(&note_end_of_process));
}

}  // namespace

std::vector<std::string> restore_signal_handlers() {
  std::vector<std::string> changed;
  if (!g_handlers_installed) return changed;
  struct sigaction now {};
  for (const auto& [number, name] : kSignals) {
    ::sigaction(number, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &on_crash) continue;
    handle_crash(number);
    changed.emplace_back(name);
  }
  ::sigaction(SIGPIPE, nullptr, &now);
  if (now.sa_handler != SIG_IGN) {
    ::signal(SIGPIPE, SIG_IGN);
    changed.emplace_back("SIGPIPE");
  }
  return changed;
}

CrashMark::CrashMark(const char* plugin, const char* call)
    : outer_plugin_(t_plugin_call.plugin), outer_call_(t_plugin_call.call) {
  t_plugin_call.call = call;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_plugin_call.plugin = plugin;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

CrashMark::~CrashMark() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_plugin_call.plugin = outer_plugin_;
  t_plugin_call.call = outer_call_;
  end_if_forked_child();
}

CrashStack::CrashStack()
    : bytes_(std::make_unique<std::array<char, kBytes>>()), host_before_(std::exchange(t_is_hosts, true)) {
  stack_t stack{};
  stack.ss_sp = bytes_->data();
  stack.ss_size = bytes_->size();
  ::sigaltstack(&stack, &before_);
}

CrashStack::~CrashStack() {
  ::sigaltstack(&before_, nullptr);
  t_is_hosts = host_before_;
}

void register_code_of(const std::string& plugin, void* handle) {
  watch_end_of_process();
  const link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map == nullptr) return;
  struct Search {
    const std::string& plugin;
    const link_map& map;
  } search{plugin, *map};
  const std::lock_guard lock(g_code_mutex);
  ::dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* data) {
        const Search& wanted = *static_cast<const Search*>(data);
        if (library->dlpi_addr != wanted.map.l_addr || std::strcmp(library->dlpi_name, wanted.map.l_name) != 0)
          return 0;
        for (std::size_t i = 0; i < library->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = library->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
          const std::uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
          const std::size_t count = g_code_range_count.load();
          if (owner_of(begin) != nullptr || count == g_code_ranges.size()) continue;
          CodeRange& code = g_code_ranges[count];
          wanted.plugin.copy(code.plugin.data(), code.plugin.size() - 1);
          code.begin = begin;
          code.end = begin + segment.p_memsz;
          g_code_range_count.store(count + 1, std::memory_order_release);
        }
        return 1;
      },
      &search);
}

const char* describe_crash(const char* how) {
  return std::strcmp(how, kLentMemoryCrash) == 0 ? "SIGSEGV (a write to memory that it was lent to read)" : how;
}

std::string describe_call(const std::string& call) { return call == kOwnThread ? "a thread of its own" : call + "()"; }

void record_crashes_to(int crash_fd, const char* program) {
  g_crash_fd = crash_fd;
  g_program = program;
  note_this_process();
  for (const auto& [number, name] : kSignals) handle_crash(number);
  expect_notes_of_writes();
  g_handlers_installed = true;
  static std::once_flag g_once;
  std::call_once(g_once, [] {
    static_cast<void>(std::atexit(&on_exit_called));
    static_cast<void>(::at_quick_exit(&on_exit_called));
    static_cast<void>(::pthread_atfork(nullptr, nullptr, &on_fork_in_child));
  });
}

}  // namespace topolet::plugin
