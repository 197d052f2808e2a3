/* Capability "topolet.log/1" of the host: its log. */
#ifndef TOPOLET_LOG_H
#define TOPOLET_LOG_H

#include <topolet/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOPOLET_LOG_ID "topolet.log/1"

typedef enum topolet_log_level {
  TOPOLET_LOG_DEBUG = 0,
  TOPOLET_LOG_INFO = 1,
  TOPOLET_LOG_WARN = 2,
  TOPOLET_LOG_ERROR = 3
} topolet_log_level;

typedef struct topolet_log {
  uint32_t struct_size;
  uint32_t reserved;

  /* Writes one line, preceded by the plugin's id. Copies the message; beyond 1,024 bytes it is cut. An unknown level
   * counts as TOPOLET_LOG_INFO. Lines beyond the limits in ABI.md are dropped. [any-thread] */
  void (*write)(const topolet_host* host, int32_t level, topolet_str message);
} topolet_log;

#ifdef __cplusplus
}
#endif

#endif
