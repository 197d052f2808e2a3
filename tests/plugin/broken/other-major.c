#include "entry.h"

/* NOLINTNEXTLINE(readability-identifier-naming): the host looks for such names */
extern TOPOLET_EXPORT const topolet_plugin_entry topolet_plugin_v2;
const topolet_plugin_entry topolet_plugin_v2 = {.struct_size = sizeof(topolet_plugin_entry)};
