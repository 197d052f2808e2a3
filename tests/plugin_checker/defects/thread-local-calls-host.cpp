// Calls the host in the destructor of a thread-local object.
#define HOST host
#define AT_SCORE touch()
namespace {
void touch();
}
#include "defect.h"

namespace {

struct Saver {
  bool used = false;
  ~Saver() {
    if (used) host->get_capability(host, TOPOLET_STR(TOPOLET_STATE_ID));
  }
};

thread_local Saver saver;

void touch() { saver.used = true; }

}  // namespace
