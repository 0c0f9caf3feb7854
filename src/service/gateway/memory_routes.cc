#include "service/gateway/memory_routes.h"

#include <vector>

#include "protocol/oip/shared_memory.h"
#include "service/gateway/http_answers.h"

namespace baton::service {

using protocol::http1::HttpResponse;
using protocol::oip::RegionText;
using protocol::oip::Route;
using protocol::oip::RouteKind;

namespace {

Result<HttpResponse, Refusal> list(const std::vector<ports::SharedRegion>& regions,
                                   const std::string& name) {
  std::vector<RegionText> found;
  for (const ports::SharedRegion& region : regions) {
    if (!name.empty() && region.name != name) continue;
    found.push_back({region.name, region.key, region.offset, region.bytes});
  }
  if (!name.empty() && found.empty()) {
    return fail(Refusal{
        EndReason::kNotFound, "shared memory region \"" + name + "\" is not registered", {}});
  }
  return json_response(200, protocol::oip::regions_json(found));
}

Result<HttpResponse, Refusal> answer_cuda(const Route& route) {
  if (route.kind == RouteKind::kCudaMemoryRemove) return json_response(200, "");
  if (route.kind == RouteKind::kCudaMemoryStatus) return list({}, route.model);
  return fail(Refusal{EndReason::kUnsupported, "CUDA shared memory is not offered", {}});
}

}  // namespace

bool is_memory_route(RouteKind kind) {
  return kind >= RouteKind::kMemoryStatus && kind <= RouteKind::kCudaMemoryRemove;
}

Refusal no_shared_memory() {
  return {EndReason::kUnsupported,
          "shared memory is not offered; limits.shared_memory turns it on",
          {}};
}

Result<HttpResponse, Refusal> answer_memory_route(const Route& route, std::string_view body,
                                                  ports::SharedMemory* memory,
                                                  protocol::json::JsonParser& parser) {
  if (route.kind >= RouteKind::kCudaMemoryStatus) return answer_cuda(route);
  if (memory == nullptr) return fail(no_shared_memory());
  if (route.kind == RouteKind::kMemoryStatus) return list(memory->regions(), route.model);
  if (route.kind == RouteKind::kMemoryRegister) {
    BATON_ASSIGN(const RegionText text, protocol::oip::parse_region(body, parser));
    BATON_TRY(memory->add({route.model, text.key, text.offset, text.bytes}));
  } else {
    memory->remove(route.model);
  }
  return json_response(200, "");
}

}  // namespace baton::service
