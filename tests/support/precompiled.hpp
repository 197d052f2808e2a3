// Headers that tests built with TOPOLET_PRECOMPILE parse once. Include the ones you use; never this.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/base/precompiled.hpp"
