/* Listens on a socket. */
#define _GNU_SOURCE
#define AT_CREATE listen_somewhere()
#define AT_DESTROY close(server)
#include <sys/socket.h>
#include <unistd.h>

static int server = -1;

static void listen_somewhere(void) {
  server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  (void)!listen(server, 1);
}
#include "defect.h"
