/* Gives the calling thread another stack for signals. */
#define _GNU_SOURCE
#define AT_SCORE sigaltstack(&stack, NULL)
#include <signal.h>

static char memory[65536];
static const stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
#include "defect.h"
