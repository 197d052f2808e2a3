/* The entry of a plugin for tests; `id_` must be its file's name. */
#ifndef TOPOLET_TESTS_PLUGIN_BROKEN_ENTRY_H
#define TOPOLET_TESTS_PLUGIN_BROKEN_ENTRY_H

#include <topolet/pick.h>
#include <topolet/propose.h>
#include <topolet/score.h>

#define ENTRY_WITH_OPTIONS(id_, options_, count_, create_) \
  const topolet_plugin_entry topolet_plugin_v1 = {         \
      sizeof(topolet_plugin_entry),                        \
      TOPOLET_ABI_MINOR,                                   \
      TOPOLET_ABI_DRAFT,                                   \
      0,                                                   \
      TOPOLET_STR(id_),                                    \
      TOPOLET_STR("1"),                                    \
      options_,                                            \
      count_,                                              \
      sizeof(topolet_option),                              \
      create_,                                             \
      {NULL, 0},                                           \
      {NULL, 0},                                           \
      {NULL, 0},                                           \
  }

#define ENTRY(id_, create_) ENTRY_WITH_OPTIONS(id_, NULL, 0, create_)

#endif
