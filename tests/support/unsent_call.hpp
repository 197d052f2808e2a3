// Handling of calls that gRPC's C++ client has not sent yet when the other end says that the connection ends.
#pragma once

#include <grpcpp/support/status.h>

namespace topolet::testing {

/// gRPC's C++ client may give such a call up. The kubelet's client, in Go, sends it over the next connection.
inline bool was_given_up_unsent(const grpc::Status& status) { return status.error_message() == "GOAWAY received"; }

}  // namespace topolet::testing
