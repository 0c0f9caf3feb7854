#include "adapters/grpc/shared_memory_methods.h"

#include "baton_inference.pb.h"

namespace baton::adapters::grpc_api {
namespace {

using namespace inference;

Refusal not_offered() {
  return {EndReason::kUnsupported,
          "shared memory is not offered; limits.shared_memory turns it on",
          {}};
}

Refusal not_registered(const std::string& name) {
  return {EndReason::kNotFound, "shared memory region \"" + name + "\" is not registered", {}};
}

Status status(Call& call, const SystemSharedMemoryStatusRequest& request,
              SystemSharedMemoryStatusResponse& response) {
  const ports::SharedMemory* memory = call.worker().front->shared_memory();
  if (memory == nullptr) return call.refused("", not_offered());
  for (const ports::SharedRegion& region : memory->regions()) {
    if (!request.name().empty() && region.name != request.name()) continue;
    auto& found = (*response.mutable_regions())[region.name];
    found.set_name(region.name);
    found.set_key(region.key);
    found.set_offset(region.offset);
    found.set_byte_size(region.bytes);
  }
  if (!request.name().empty() && response.regions().empty()) {
    return call.refused("", not_registered(request.name()));
  }
  return Status();
}

Status add(Call& call, const SystemSharedMemoryRegisterRequest& request,
           SystemSharedMemoryRegisterResponse&) {
  ports::SharedMemory* memory = call.worker().front->shared_memory();
  if (memory == nullptr) return call.refused("", not_offered());
  const auto added =
      memory->add({request.name(), request.key(), request.offset(), request.byte_size()});
  return added.has_value() ? Status() : call.refused("", added.error());
}

Status remove(Call& call, const SystemSharedMemoryUnregisterRequest& request,
              SystemSharedMemoryUnregisterResponse&) {
  ports::SharedMemory* memory = call.worker().front->shared_memory();
  if (memory == nullptr) return call.refused("", not_offered());
  memory->remove(request.name());
  return Status();
}

// There is none: clients that tidy up before they begin are not to fail.
Status cuda_status(Call& call, const CudaSharedMemoryStatusRequest& request,
                   CudaSharedMemoryStatusResponse&) {
  if (!request.name().empty()) return call.refused("", not_registered(request.name()));
  return Status();
}

Status cuda_remove(Call&, const CudaSharedMemoryUnregisterRequest&,
                   CudaSharedMemoryUnregisterResponse&) {
  return Status();
}

}  // namespace

void add_shared_memory_methods(MethodTable& methods) {
  methods.offered[inference_method("SystemSharedMemoryStatus")] =
      unary<SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse>(status);
  methods.offered[inference_method("SystemSharedMemoryRegister")] =
      unary<SystemSharedMemoryRegisterRequest, SystemSharedMemoryRegisterResponse>(add);
  methods.offered[inference_method("SystemSharedMemoryUnregister")] =
      unary<SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse>(remove);
  methods.offered[inference_method("CudaSharedMemoryStatus")] =
      unary<CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse>(cuda_status);
  methods.offered[inference_method("CudaSharedMemoryUnregister")] =
      unary<CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse>(cuda_remove);
}

}  // namespace baton::adapters::grpc_api
