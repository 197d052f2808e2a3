// Calls the host where its option "how" says, also when its instance has ended, and writes what it was told to the file
// of its option "notes": a line for each word.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include <topolet/log.h>
#include <topolet/state.h>

#include "entry.h"

namespace {

using std::chrono::milliseconds;

/// What the plugin keeps for ever, against all custom.
struct Kept {
  std::string how;
  std::string notes;
  const topolet_host* host = nullptr;
  const topolet_log* log = nullptr;
  const topolet_state* state = nullptr;
  const topolet_error_sink* error = nullptr;
  std::atomic<const topolet_score_sink*> score = nullptr;
  std::atomic<bool> is_in_score = false;
};
Kept& kept() {
  static auto* const kKept = new Kept;
  return *kKept;
}

void note(const std::string& line) {
  const int file = ::open(kept().notes.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  const std::string text = line + "\n";
  (void)!::write(file, text.data(), text.size());
  ::close(file);
}

constexpr topolet_str kName = TOPOLET_STR("name");
constexpr topolet_str kHalf = TOPOLET_STR("half");
constexpr topolet_str kValue = TOPOLET_STR("canary of the state");

/// Calls everything there is, and says what came of it.
std::string call_all() {
  const Kept& all = kept();
  char buffer[64];
  std::size_t size = 0;
  all.log->write(all.host, TOPOLET_LOG_INFO, TOPOLET_STR("here I am"));
  std::string said = "get " + std::to_string(all.state->get(all.host, kName, buffer, sizeof(buffer), &size));
  said += " next " + std::to_string(all.state->next(all.host, {nullptr, 0}, buffer, sizeof(buffer), &size));
  said += " set " + std::to_string(all.state->set(all.host, kName, kValue));
  said += " remove " + std::to_string(all.state->remove(all.host, kName));
  said += " create " + std::to_string(all.error->set(all.error, kName));
  if (const topolet_score_sink* const sink = all.score.load(); sink != nullptr) {
    said += " score " + std::to_string(sink->set(sink, 0, TOPOLET_VERDICT_SCORE, 1, kName));
    said += " error " + std::to_string(sink->error(sink, kName));
  }
  said += all.host->get_capability(all.host, TOPOLET_STR(TOPOLET_LOG_ID)) == all.log ? " same" : " other";
  return said;
}

struct AtTheEnd {
  AtTheEnd(const char* its_how, const char* its_name) : how(its_how), name(its_name) {}
  ~AtTheEnd() {
    if (kept().how == how && kept().host != nullptr) note(std::string(name) + ": " + call_all());
  }
  const char* how;
  const char* name;
};
const AtTheEnd g_static("static", "static destructor");
thread_local const AtTheEnd t_of_thread("thread-local", "thread's destructor");

struct Instance {
  topolet_instance view{};
  std::thread joined;
  std::thread forgotten;
  std::atomic<bool> stops = false;
};

void start_threads(Instance& instance) {
  if (kept().how == "joins") {
    instance.joined = std::thread([&instance] {
      while (!kept().is_in_score && !instance.stops) std::this_thread::yield();
      if (kept().is_in_score) note("own thread: " + call_all());
      kept().is_in_score = false;
      while (!instance.stops) std::this_thread::yield();
      note("own thread: ends");
    });
  }
  if (kept().how == "forgets") instance.forgotten = std::thread([] { std::this_thread::sleep_for(milliseconds(50)); });
  if (kept().how == "detaches") {
    std::thread([] {
      char buffer[64];
      std::size_t size = 0;
      while (kept().state->get(kept().host, kName, buffer, sizeof(buffer), &size) != TOPOLET_LATE) {
        std::this_thread::yield();
      }
      note("detached: " + call_all());
      // Until the process is gone.
      while (true) call_all();
    }).detach();
  }
}

/// Reads more than a decision may read, and a small value, and says what came of it.
int32_t read_twice(const topolet_score_sink* sink) {
  const Kept& all = kept();
  static char g_buffer[TOPOLET_STATE_MAX_VALUE];
  std::size_t size = 0;
  std::string said = "name " + std::to_string(all.state->get(all.host, kName, g_buffer, sizeof(g_buffer), &size));
  for (int i = 0; i < 2; ++i)
    said += " half " + std::to_string(all.state->get(all.host, kHalf, g_buffer, sizeof(g_buffer), &size));
  return sink->set(sink, 0, TOPOLET_VERDICT_SCORE, 7, {said.data(), said.size()});
}

int32_t score(const topolet_instance*, const topolet_request*, const topolet_score_sink* sink) {
  kept().score = sink;
  (void)&t_of_thread;
  if (kept().how == "joins") {
    kept().is_in_score = true;
    while (kept().is_in_score) std::this_thread::yield();
  }
  if (kept().how == "reads") return read_twice(sink);
  return sink->set(sink, 0, TOPOLET_VERDICT_SCORE, 7, TOPOLET_STR("its own"));
}

const void* get_capability(const topolet_instance*, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, &score};
  return topolet_str_is(id, TOPOLET_SCORE_ID) ? &kScore : nullptr;
}

void destroy(const topolet_instance* view) {
  auto* const instance = static_cast<Instance*>(view->context);
  instance->stops = true;
  if (instance->joined.joinable()) instance->joined.join();
  delete instance;
  note("destroyed");
  if (kept().how == "throws") throw std::runtime_error("the last of it");
}

int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
               const topolet_instance** instance) {
  const auto option = [request](std::size_t i) {
    const topolet_str value = request->options.items[i].value;
    return std::string(value.ptr, value.len);
  };
  Kept& all = kept();
  all.how = option(0);
  all.notes = option(1);
  all.host = request->host;
  all.error = error;
  all.log = static_cast<const topolet_log*>(all.host->get_capability(all.host, TOPOLET_STR(TOPOLET_LOG_ID)));
  all.state = static_cast<const topolet_state*>(all.host->get_capability(all.host, TOPOLET_STR(TOPOLET_STATE_ID)));
  all.state->set(all.host, kName, kValue);
  if (all.how == "reads") {
    const std::string half(TOPOLET_STATE_MAX_READ / 2, 'x');
    all.state->set(all.host, kHalf, {half.data(), half.size()});
  }
  if (all.how == "exit-handler") std::atexit([] { note("exit handler: " + call_all()); });
  auto* const made = new Instance;
  made->view = {sizeof(topolet_instance), 0, made, &get_capability, &destroy};
  start_threads(*made);
  *instance = &made->view;
  note("created");
  return TOPOLET_OK;
}

const topolet_option kOptions[] = {
    {TOPOLET_STR("how"), TOPOLET_OPTION_STRING, 0, {nullptr, 0}, {nullptr, 0}, 0, 0, TOPOLET_STR("What it does.")},
    {TOPOLET_STR("notes"), TOPOLET_OPTION_STRING, 0, {nullptr, 0}, {nullptr, 0}, 0, 0, TOPOLET_STR("A file.")}};

}  // namespace

ENTRY_WITH_OPTIONS("outlives", kOptions, 2, &create);
