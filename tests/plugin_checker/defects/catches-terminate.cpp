// Sets what std::terminate calls.
#include <cstdlib>
#include <exception>
#define AT_CREATE std::set_terminate([] { std::_Exit(0); })
#include "defect.h"
