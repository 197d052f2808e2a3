// Calls the host in the destructor of a static object.
#define HOST host
#define AT_CREATE touch()
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

Saver saver;

void touch() { saver.used = true; }

}  // namespace
