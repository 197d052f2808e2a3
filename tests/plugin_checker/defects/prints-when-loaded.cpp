// Prints through C++ when it is loaded.
#include <iostream>
#define AT_LOAD std::cout << "loaded" << std::endl
#include "defect.h"
