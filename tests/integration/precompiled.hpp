// Headers that the integration tests parse once. Include the ones you use; never this.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/precompiled.hpp"
#include "tests/support/cri.grpc.pb.h"
