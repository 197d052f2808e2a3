// Sets what a failing operator new calls.
#include <cstdlib>
#include <new>
#define AT_LOAD std::set_new_handler([] { std::_Exit(0); })
#include "defect.h"
