"""The protocol buffer messages of nets, solvers, weights and records: `caffe.proto.caffe_pb2`."""
