#include <stdexcept>

#include "entry.h"

static int32_t score(const topolet_instance*, const topolet_request*, const topolet_score_sink*) {
  throw std::runtime_error("index 7 of 4");
}

static int32_t pick(const topolet_instance*, const topolet_pick_request*, const topolet_pick_sink*) { throw 7; }

static const void* get_capability(const topolet_instance*, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, &score};
  static const topolet_pick kPick = {sizeof(topolet_pick), 0, &pick};
  if (topolet_str_is(id, TOPOLET_SCORE_ID)) return &kScore;
  if (topolet_str_is(id, TOPOLET_PICK_ID)) return &kPick;
  return nullptr;
}

static void destroy(const topolet_instance*) { throw std::logic_error("not while I live"); }

static int32_t create(const topolet_create_request*, const topolet_error_sink*, const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, nullptr, &get_capability, &destroy};
  *instance = &kInstance;
  return TOPOLET_OK;
}

ENTRY("throws", &create);
