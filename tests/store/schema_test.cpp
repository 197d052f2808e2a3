#include "tests/store/scratch.hpp"
