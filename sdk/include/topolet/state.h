/* Capability "topolet.state/1" of the host: values that a plugin keeps over restarts, by key. Each plugin has its own;
 * instances of one plugin share them. */
#ifndef TOPOLET_STATE_H
#define TOPOLET_STATE_H

#include <topolet/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOPOLET_STATE_ID "topolet.state/1"

/* Keys have 1 to 256 bytes, values at most 64 KiB; both may hold any bytes. */
#define TOPOLET_STATE_MAX_KEY 256
#define TOPOLET_STATE_MAX_VALUE 65536
#define TOPOLET_STATE_MAX_VALUES 4096 /* that one plugin may keep */
/* Bytes of keys and values that one plugin may read in the calls of one decision. */
#define TOPOLET_STATE_MAX_READ 65536

typedef struct topolet_state {
  uint32_t struct_size;
  uint32_t reserved;

  /* Copies the value of `key` to `buffer`, which the caller owns, and says in *size how long it is. `buffer` may be
   * null where `capacity` is 0, `size` may not. Returns TOPOLET_OK; TOPOLET_UNKNOWN without such a key;
   * TOPOLET_OUT_OF_RANGE if it is longer than `capacity`: then only *size is written; TOPOLET_INVALID for an
   * invalid key; TOPOLET_FAILED if the host cannot read, or if more than
   * TOPOLET_STATE_MAX_READ bytes were read in this decision; TOPOLET_LATE when it has abandoned the running call, and
   * after destroy(). [any-thread] */
  int32_t (*get)(const topolet_host* host, topolet_str key, void* buffer, size_t capacity, size_t* size);

  /* Copies the first key after `after`, in the order of their bytes, in the same way; an empty `after` begins. Returns
   * TOPOLET_UNKNOWN at the end. [any-thread] */
  int32_t (*next)(const topolet_host* host, topolet_str after, void* buffer, size_t capacity, size_t* size);

  /* Sets a value. Copies both. Returns TOPOLET_OK; TOPOLET_FORBIDDEN from [decision] functions, which must answer the
   * same for the same request, and outside any call or on another thread than the call's; TOPOLET_INVALID for
   * an invalid key, TOPOLET_OUT_OF_RANGE for a value that is too long; TOPOLET_FAILED if the host cannot write or keeps
   * TOPOLET_STATE_MAX_VALUES values already; TOPOLET_LATE as above. [control], during create() only; [event] */
  int32_t (*set)(const topolet_host* host, topolet_str key, topolet_str value);

  /* Removes a value. TOPOLET_OK also if there was none; the rest as for set().
   * [control], during create() only; [event] */
  int32_t (*remove)(const topolet_host* host, topolet_str key);
} topolet_state;

#ifdef __cplusplus
}
#endif

#endif
