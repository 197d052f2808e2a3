package main

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// rpc is one method of the CRI, as its description says.
type rpc struct {
	path   string
	name   string
	input  protoreflect.MessageDescriptor
	output protoreflect.MessageDescriptor
}

func allMethods() []rpc {
	var all []rpc
	services := cri.File_staging_src_k8s_io_cri_api_pkg_apis_runtime_v1_api_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			method := methods.Get(j)
			path := "/" + string(services.Get(i).FullName()) + "/" + string(method.Name())
			all = append(all, rpc{path, string(method.Name()), method.Input(), method.Output()})
		}
	}
	return all
}

// filled has every field set: strings to text, numbers to 1, one element in every list, to the given depth.
func filled(descriptor protoreflect.MessageDescriptor, text string, depth int) []byte {
	message := dynamicpb.NewMessage(descriptor)
	fill(message, text, depth)
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		panic(err)
	}
	return bytes
}

func fill(message protoreflect.Message, text string, depth int) {
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.Message() != nil && !field.IsMap() && depth == 0 {
			continue
		}
		switch {
		case field.IsMap():
			entry := message.NewField(field)
			if field.MapValue().Message() == nil {
				entry.Map().Set(scalar(field.MapKey(), text).MapKey(), scalar(field.MapValue(), text))
			}
			message.Set(field, entry)
		case field.IsList() && field.Message() != nil:
			fill(message.Mutable(field).List().AppendMutable().Message(), text, depth-1)
		case field.IsList():
			message.Mutable(field).List().Append(scalar(field, text))
		case field.Message() != nil:
			fill(message.Mutable(field).Message(), text, depth-1)
		default:
			message.Set(field, scalar(field, text))
		}
	}
}

func scalar(field protoreflect.FieldDescriptor, text string) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(text))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(1)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(1)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(1)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(1)
	default:
		return protoreflect.ValueOfInt64(1)
	}
}

// withUnknownField appends what a later CRI may send.
func withUnknownField(request []byte) []byte {
	const later = 12345
	request = protowire.AppendTag(append([]byte(nil), request...), later, protowire.BytesType)
	return protowire.AppendString(request, "from the future")
}
