package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	callTimeout     = time.Minute
	maxMessageBytes = 64 << 20
)

// socket is one way to the runtime: its own socket, or topolet's.
type socket struct {
	name string
	conn *grpc.ClientConn
}

// answer is all that a caller sees of one call.
type answer struct {
	messages [][]byte
	status   *spb.Status
	header   metadata.MD
	trailer  metadata.MD
}

func (a answer) failure() string {
	if a.status.GetCode() == 0 {
		return ""
	}
	return fmt.Sprintf("code %d: %s", a.status.GetCode(), a.status.GetMessage())
}

func dial(name, endpoint string) (socket, error) {
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)))
	return socket{name, conn}, err
}

// call sends one message and reads until the end; on the wire a unary answer is a stream of one.
func (s socket) call(ctx context.Context, method string, request []byte) answer {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stream, err := s.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return answer{status: status.Convert(err).Proto()}
	}
	// A send that fails tells nothing; why it failed is what the receiving side says.
	_ = stream.SendMsg(request)
	_ = stream.CloseSend()
	var got answer
	for {
		var message []byte
		if err = stream.RecvMsg(&message); err != nil {
			break
		}
		got.messages = append(got.messages, message)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	got.status = status.Convert(err).Proto()
	got.header, _ = stream.Header()
	got.trailer = stream.Trailer()
	return got
}

func (s socket) ask(method string, request proto.Message) answer {
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		panic(err)
	}
	return s.call(context.Background(), method, bytes)
}

// follow hands over what an endless stream brings until the context ends.
func (s socket) follow(ctx context.Context, method string, out chan<- []byte) {
	stream, err := s.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return
	}
	_ = stream.SendMsg([]byte{})
	_ = stream.CloseSend()
	for {
		var message []byte
		if stream.RecvMsg(&message) != nil {
			return
		}
		out <- message
	}
}

// bytesCodec hands messages over as they are on the wire. It takes the place of the codec "proto": a codec forced on a
// call would show in the content type, and no client of the CRI forces one.
type bytesCodec struct{}

func init() { encoding.RegisterCodec(bytesCodec{}) }

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(value any) ([]byte, error) { return value.([]byte), nil }

func (bytesCodec) Unmarshal(data []byte, value any) error {
	*value.(*[]byte) = append([]byte(nil), data...)
	return nil
}
