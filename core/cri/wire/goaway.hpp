// Tells a client to go on with another connection.
#pragma once

namespace topolet::cri {

/// Puts a GOAWAY frame on a client's connection that says: no stream is refused, but begin none any more (RFC 9113,
/// 6.8). The client ends its calls on this connection and makes new ones on another.
///
/// gRPC 1.51 has no call for that: its own GOAWAY comes with the end of the server, which cancels the calls that the
/// client makes before it has read the frame. So the frame is written to a duplicate of the socket beside gRPC, which
/// goes on serving the connection. To be called while gRPC is not writing: frames must not get into one another.
/// Where the socket takes nothing, nothing is sent.
void send_goaway(int connection_fd);

}  // namespace topolet::cri
