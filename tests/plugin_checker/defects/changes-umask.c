/* Changes the umask. */
#define AT_CREATE umask(0077)
#include <sys/stat.h>

#include "defect.h"
