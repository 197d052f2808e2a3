// `topolet status` against a topoletd that answers as a test wants.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/control/control.grpc.pb.h"
#include "tests/cli/run_topolet.hpp"

namespace topolet::testing {

class MadeUpStatus final : public control::v1::Control::Service {
 public:
  MadeUpStatus(const std::string& socket, control::v1::StatusResponse status) : status_(std::move(status)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  grpc::Status Status(grpc::ServerContext* /*context*/, const control::v1::StatusRequest* /*request*/,
                      control::v1::StatusResponse* response) override {
    *response = status_;
    return grpc::Status::OK;
  }

 private:
  const control::v1::StatusResponse status_;
  std::unique_ptr<grpc::Server> server_;
};

/// Runs the command against a topoletd that has this status.
inline std::string said_of_status(const control::v1::StatusResponse& status, std::vector<std::string> options = {}) {
  const TempDir directory;
  const MadeUpStatus daemon(directory.file("control.sock"), status);
  options.insert(options.begin(), {"status", "--socket", directory.file("control.sock")});
  const Said said = topolet(options);
  EXPECT_EQ(said.code, 0) << said.text;
  return said.text;
}

}  // namespace topolet::testing
