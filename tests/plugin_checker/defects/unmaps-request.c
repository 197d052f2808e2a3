/* Unmaps what it is lent. */
#define AT_SCORE munmap((void*)((uintptr_t)request & ~(uintptr_t)4095), 4096)
#include <stdint.h>
#include <sys/mman.h>

#include "defect.h"
