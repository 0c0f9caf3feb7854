"""baton's .proto and tritonclient's descriptors agree: names, numbers, labels and types, nested ones too."""

import pathlib
import subprocess

import pytest
from google.protobuf import descriptor_pb2
from tritonclient.grpc import model_config_pb2, service_pb2

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTO = ROOT / "proto" / "baton_inference.proto"


def compile_descriptors(folder):
    target = folder / "descriptors.bin"
    subprocess.run(["protoc", f"--proto_path={PROTO.parent}", f"--descriptor_set_out={target}", "--include_imports",
                    PROTO.name], check=True)
    found = descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes())
    return [item for item in found.file if item.package == "inference"]


def tritons_descriptors():
    files = []
    for module in (service_pb2, model_config_pb2):
        item = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(item)
        files.append(item)
    return files


def flatten(files):
    """{full name: what it is} of every message, field, oneof, enum value and method."""
    found = {}
    for item in files:
        for message in item.message_type:
            add_message(found, message, "")
        for enum in item.enum_type:
            add_enum(found, enum, "")
        for service in item.service:
            for method in service.method:
                found[f"{service.name}.{method.name}"] = (
                    method.input_type, method.output_type, method.client_streaming, method.server_streaming)
    return found


def add_message(found, message, prefix):
    name = prefix + message.name
    found[name] = ("message", message.options.map_entry)
    oneofs = [item.name for item in message.oneof_decl]
    for field in message.field:
        oneof = oneofs[field.oneof_index] if field.HasField("oneof_index") else None
        found[f"{name}.{field.name}"] = (field.number, field.type, field.label, field.type_name, oneof)
    for nested in message.nested_type:
        add_message(found, nested, name + ".")
    for enum in message.enum_type:
        add_enum(found, enum, name + ".")


def add_enum(found, enum, prefix):
    for value in enum.value:
        found[f"{prefix}{enum.name}.{value.name}"] = value.number


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return flatten(compile_descriptors(tmp_path_factory.mktemp("proto")))


THEIRS = flatten(tritons_descriptors())


def test_the_comparison_sees_much():
    assert len(THEIRS) > 500
    assert THEIRS["ModelInferRequest.raw_input_contents"][0] == 7
    assert THEIRS["ModelSequenceBatching.Control.Kind.CONTROL_SEQUENCE_CORRID"] == 3


def test_what_triton_has_is_here_and_the_same(ours):
    differing = {name: (what, ours.get(name)) for name, what in THEIRS.items() if ours.get(name) != what}
    assert not differing


def test_nothing_here_takes_a_number_of_theirs(ours):
    # what is only ours must not stand in a message of theirs: their next field would take the number
    extra = [name for name in ours.keys() - THEIRS.keys()]
    shared = [name for name in extra if name.rsplit(".", 1)[0] in THEIRS]
    assert not shared, shared
