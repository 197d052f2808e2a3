/* Starts processes. TOPOLET_TEST_FORK says where and how: "create back", "score sleep"; see at() and start(). */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <topolet/events.h>
#include <topolet/score.h>
#include <topolet/tick.h>

#include "tests/plugin/broken/entry.h"

extern char** environ;

static void sleep_for_ever(void) {
  for (;;) pause();
}

static void run_sleep(void) { execlp("sleep", "sleep", "1000", NULL); }

static void* fork_on_thread(void* unused) {
  (void)unused;
  (void)!fork();
  return NULL;
}

static void* sleep_on_thread(void* unused) {
  (void)unused;
  sleep_for_ever();
  return NULL;
}

static void start(const char* how) {
  if (strcmp(how, "back") == 0) (void)!fork();
  if (strcmp(how, "back-vfork") == 0) (void)!vfork();
  if (strcmp(how, "back-raw") == 0) (void)!syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
  if (strcmp(how, "sleep") == 0 && fork() == 0) run_sleep();
  if (strcmp(how, "sleep-vfork") == 0 && vfork() == 0) run_sleep();
  if (strcmp(how, "stays") == 0 && fork() == 0) sleep_for_ever();
  if (strcmp(how, "session") == 0 && fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    sleep_for_ever();
  }
  if (strcmp(how, "zombie") == 0 && fork() == 0) _exit(0);
  if (strcmp(how, "waits") == 0) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
  }
  if (strcmp(how, "spawns") == 0) {
    pid_t child = 0;
    char* words[] = {"true", NULL};
    if (posix_spawnp(&child, "true", NULL, NULL, words, environ) == 0) waitpid(child, NULL, 0);
  }
  if (strcmp(how, "thread") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, fork_on_thread, NULL) == 0) pthread_join(thread, NULL);
  }
  while (strcmp(how, "bomb") == 0) (void)!fork();
  while (strcmp(how, "threads") == 0) {
    pthread_t thread;
    (void)pthread_create(&thread, NULL, sleep_on_thread, NULL);
  }
}

static void at(const char* where) {
  const char* what = getenv("TOPOLET_TEST_FORK");
  const size_t size = strlen(where);
  if (what != NULL && strncmp(what, where, size) == 0 && what[size] == ' ') start(what + size + 1);
}

__attribute__((constructor)) static void at_load(void) { at("load"); }

__attribute__((destructor)) static void at_unload(void) { at("unload"); }

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  (void)instance, (void)request, (void)sink;
  at("score");
  return TOPOLET_OK;
}

static int32_t notify(const topolet_instance* instance, const topolet_event* event, const topolet_event_sink* sink) {
  (void)instance, (void)event, (void)sink;
  at("notify");
  return TOPOLET_OK;
}

static int32_t tick(const topolet_instance* instance, const topolet_tick_request* request,
                    const topolet_tick_sink* sink) {
  (void)instance, (void)request, (void)sink;
  at("tick");
  return TOPOLET_OK;
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, score};
  static const topolet_events kEvents = {sizeof(topolet_events), 0, notify};
  static const topolet_tick kTick = {sizeof(topolet_tick), 1000, tick};
  (void)instance;
  at("get_capability");
  if (topolet_str_is(id, TOPOLET_SCORE_ID)) return &kScore;
  if (topolet_str_is(id, TOPOLET_EVENTS_ID)) return &kEvents;
  if (topolet_str_is(id, TOPOLET_TICK_ID)) return &kTick;
  return NULL;
}

static void destroy(const topolet_instance* instance) {
  (void)instance;
  at("destroy");
}

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  (void)request, (void)error;
  at("create");
  *instance = &kInstance;
  return TOPOLET_OK;
}

ENTRY("forks", create);
