// Does in score() what its option "how" names, and behaves everywhere else.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <locale>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include <topolet/adjust.h>
#include <topolet/events.h>
#include <topolet/log.h>
#include <topolet/state.h>

#include "entry.h"

namespace {

std::string g_how;
bool g_forks_at_exit = false;
const topolet_host* g_host = nullptr;
const topolet_log* g_log = nullptr;
const topolet_state* g_state = nullptr;

constexpr topolet_str kBadText = TOPOLET_STR(
    "caf\xe9 \xc3\x28 \xf0\x9f\x98 \xed\xa0\x80 \xc2\x9b"
    "2J end");

struct WithoutWords : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

struct BadWords : std::exception {
  const char* what() const noexcept override { return kBadText.ptr; }
};

struct ThrowsAtItsEnd {
  // NOLINTNEXTLINE(bugprone-exception-escape): that is its mischief
  ~ThrowsAtItsEnd() noexcept(false) { throw std::runtime_error("at the end"); }
};

struct Grouping : std::numpunct<char> {
  char do_thousands_sep() const override { return '\''; }
  std::string do_grouping() const override { return "\1"; }
};

void throw_seven() { throw 7; }
// NOLINTNEXTLINE(bugprone-exception-escape): that is its mischief
void never_throws() noexcept { throw_seven(); }

/// Not as a tail call, which would leave nothing of this plugin on the stack.
volatile int g_survived = 0;
void crash() {
  raise(SIGSEGV);
  g_survived = 1;
}
// NOLINTNEXTLINE(clang-analyzer-core.NullDereference): that is its mischief
void write_to_null() { *const_cast<volatile int*>(static_cast<int*>(nullptr)) = 1; }

template <class Work>
void on_own_thread(Work work) {
  std::thread(work).detach();
  for (;;) pause();
}

using Deed = std::function<void(const topolet_request&, const topolet_score_sink&)>;

const std::map<std::string, Deed>& deeds() {
  static const std::map<std::string, Deed> kAll = {
      {"throw-int", [](const auto&, const auto&) { throw 7; }},
      {"throw-wordless", [](const auto&, const auto&) { throw WithoutWords(); }},
      {"throw-bad-words", [](const auto&, const auto&) { throw BadWords(); }},
      {"throw-long", [](const auto&, const auto&) { throw std::runtime_error(std::string(10 << 20, 'x')); }},
      {"throw-at-end", [](const auto&, const auto&) { const ThrowsAtItsEnd thrower; }},
      {"no-memory", [](const auto&, const auto&) { throw std::bad_alloc(); }},
      {"bad-reason", [](const auto&, const auto& sink) { sink.set(&sink, 0, TOPOLET_VERDICT_SCORE, 1, kBadText); }},
      {"bad-error",
       [](const auto&, const auto& sink) {
         sink.error(&sink, kBadText);
         throw 7;
       }},
      {"long-reason",
       [](const auto&, const auto& sink) {
         // Cut in the middle of a character.
         std::string text = "x";
         while (text.size() < 10 << 20) text += "\xc3\xa9";
         sink.set(&sink, 0, TOPOLET_VERDICT_SCORE, 1, {text.data(), text.size()});
       }},
      {"log-flood",
       [](const auto&, const auto&) {
         for (int i = 0; i < 100000; ++i) g_log->write(g_host, TOPOLET_LOG_ERROR, TOPOLET_STR("flood"));
       }},
      {"bad-log", [](const auto&, const auto&) { g_log->write(g_host, TOPOLET_LOG_ERROR, kBadText); }},
      {"locale",
       [](const auto&, const auto&) {
         setlocale(LC_ALL, "C.UTF-8");
         std::locale::global(std::locale(std::locale(), new Grouping));
       }},
      {"fork", [](const auto&, const auto&) { (void)!fork(); }},
      {"exit", [](const auto&, const auto&) { exit(0); }},
      {"quick-exit", [](const auto&, const auto&) { quick_exit(0); }},
      {"terminate", [](const auto&, const auto&) { std::terminate(); }},
      {"noexcept", [](const auto&, const auto&) { never_throws(); }},
      {"pthread-exit", [](const auto&, const auto&) { pthread_exit(nullptr); }},
      {"illegal", [](const auto&, const auto&) { raise(SIGILL); }},
      {"bus", [](const auto&, const auto&) { raise(SIGBUS); }},
      {"fpe", [](const auto&, const auto&) { raise(SIGFPE); }},
      {"handlers", [](const auto&, const auto&) { crash(); }},
      {"own-crash", [](const auto&, const auto&) { on_own_thread(crash); }},
      {"own-null", [](const auto&, const auto&) { on_own_thread(write_to_null); }},
      {"own-abort", [](const auto&, const auto&) { on_own_thread([] { abort(); }); }},
      {"own-throw", [](const auto&, const auto&) { on_own_thread([] { throw std::runtime_error("nobody hears"); }); }},
      {"own-exit", [](const auto&, const auto&) { on_own_thread([] { exit(0); }); }},
  };
  return kAll;
}

/// The parent waits, so that what the child says is there when it has ended.
__attribute__((destructor)) void at_exit() {
  if (!g_forks_at_exit) return;
  const pid_t child = fork();
  const std::string text = child == 0 ? "the child goes on\n" : "the parent goes on\n";
  if (child > 0) waitpid(child, nullptr, 0);
  (void)!write(STDERR_FILENO, text.data(), text.size());
}

int32_t score(const topolet_instance*, const topolet_request* request, const topolet_score_sink* sink) {
  const auto deed = deeds().find(g_how);
  if (deed != deeds().end()) deed->second(*request, *sink);
  return TOPOLET_OK;
}

int32_t adjust(const topolet_instance*, const topolet_adjust_request*, const topolet_adjust_sink* sink) {
  static const topolet_str kName = TOPOLET_STR("NAME");
  if (g_how == "bad-annotation") sink->annotation(sink, kName, kBadText);
  if (g_how == "bad-variable") sink->env(sink, kName, kBadText);
  if (g_how == "bad-variable-name") sink->env(sink, kBadText, kName);
  return TOPOLET_OK;
}

int32_t notify(const topolet_instance*, const topolet_event*, const topolet_event_sink*) {
  static const std::string kValue(TOPOLET_STATE_MAX_VALUE, 'x');
  static int g_key = 0;
  while (g_how == "state-flood") {
    const std::string key = std::to_string(++g_key);
    if (g_state->set(g_host, {key.data(), key.size()}, {kValue.data(), kValue.size()}) != TOPOLET_OK) break;
  }
  return TOPOLET_OK;
}

const void* get_capability(const topolet_instance*, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, &score};
  static const topolet_adjust kAdjust = {sizeof(topolet_adjust), 0, &adjust};
  if (topolet_str_is(id, TOPOLET_SCORE_ID)) return &kScore;
  static const topolet_events kEvents = {sizeof(topolet_events), 0, &notify};
  if (topolet_str_is(id, TOPOLET_ADJUST_ID)) return &kAdjust;
  if (topolet_str_is(id, TOPOLET_EVENTS_ID)) return &kEvents;
  return nullptr;
}

void destroy(const topolet_instance*) {
  if (g_how == "crash-at-end") crash();
}

int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
               const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, nullptr, &get_capability, &destroy};
  const topolet_str how = request->options.items[0].value;
  g_how.assign(how.ptr, how.len);
  g_forks_at_exit = g_how == "fork-at-exit";
  g_host = request->host;
  g_log = static_cast<const topolet_log*>(g_host->get_capability(g_host, TOPOLET_STR(TOPOLET_LOG_ID)));
  g_state = static_cast<const topolet_state*>(g_host->get_capability(g_host, TOPOLET_STR(TOPOLET_STATE_ID)));
  if (g_how == "handlers") {
    for (const int number : {SIGSEGV, SIGPIPE}) signal(number, SIG_DFL);
  }
  if (g_how == "bad-create-error") {
    error->set(error, kBadText);
    return TOPOLET_FAILED;
  }
  if (g_how == "exit-at-create") exit(0);
  *instance = &kInstance;
  return TOPOLET_OK;
}

const topolet_option kOptions[] = {
    {TOPOLET_STR("how"), TOPOLET_OPTION_STRING, 0, {nullptr, 0}, {nullptr, 0}, 0, 0, TOPOLET_STR("What it does.")}};

}  // namespace

ENTRY_WITH_OPTIONS("mischief", kOptions, 1, &create);
