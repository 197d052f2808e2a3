// Wants a tick each few milliseconds, with a thread of its own, while its interval is a day. Writes a line for each
// tick to the file that its option "notes" names.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <topolet/tick.h>
#include <topolet/wake.h>

#include "entry.h"

namespace {

struct Instance {
  std::string notes;
  topolet_instance view{};
  std::atomic<bool> stops = false;
  std::thread thread;
};

Instance& of(const topolet_instance* view) { return *static_cast<Instance*>(view->context); }

int32_t tick(const topolet_instance* view, const topolet_tick_request*, const topolet_tick_sink*) {
  const int file = ::open(of(view).notes.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return TOPOLET_FAILED;
  (void)!::write(file, "tick\n", 5);
  ::close(file);
  return TOPOLET_OK;
}

const void* get_capability(const topolet_instance*, topolet_str id) {
  static const topolet_tick kTick = {sizeof(topolet_tick), TOPOLET_TICK_MAX_MS, &tick};
  return topolet_str_is(id, TOPOLET_TICK_ID) ? &kTick : nullptr;
}

void destroy(const topolet_instance* view) {
  Instance* const instance = &of(view);
  instance->stops = true;
  instance->thread.join();
  delete instance;
}

int32_t create(const topolet_create_request* request, const topolet_error_sink*, const topolet_instance** instance) {
  const topolet_host* const host = request->host;
  const auto* const wake = static_cast<const topolet_wake*>(host->get_capability(host, TOPOLET_STR(TOPOLET_WAKE_ID)));
  if (wake == nullptr) return TOPOLET_FAILED;
  auto* const made = new Instance;
  made->notes.assign(request->options.items[0].value.ptr, request->options.items[0].value.len);
  made->view = {sizeof(topolet_instance), 0, made, &get_capability, &destroy};
  made->thread = std::thread([made, host, wake] {
    while (!made->stops && wake->tick_soon(host) == TOPOLET_OK)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  *instance = &made->view;
  return TOPOLET_OK;
}

const topolet_option kOptions[] = {
    {TOPOLET_STR("notes"), TOPOLET_OPTION_STRING, 0, {nullptr, 0}, {nullptr, 0}, 0, 0, TOPOLET_STR("A file.")}};

}  // namespace

ENTRY_WITH_OPTIONS("wakes", kOptions, 1, &create);
