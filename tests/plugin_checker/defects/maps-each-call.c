/* Maps memory in each call, uses it and never unmaps it. */
#define _GNU_SOURCE
#define AT_SCORE use_pages()
#include <stddef.h>
#include <sys/mman.h>

static void use_pages(void) {
  char* pages = (char*)mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 65536; i += 4096) pages[i] = 1;
}
#include "defect.h"
