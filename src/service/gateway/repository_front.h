#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "ports/executor.h"
#include "ports/repository_control.h"
#include "protocol/http1/exchange.h"
#include "protocol/oip/repository_codec.h"
#include "protocol/oip/route.h"
#include "service/gateway/gateway.h"
#include "service/gateway/side_work.h"

namespace baton::service {

// The model repository extension over HTTP, for one worker. All arguments outlive it; a null
// control: the extension is not offered.
class RepositoryFront {
 public:
  RepositoryFront(Gateway& gateway, ports::Executor& loop, SideWork& reading,
                  ports::RepositoryControl* control)
      : gateway_(gateway), loop_(loop), reading_(reading), control_(control) {}

  // A request to one of the extension's routes; answered through `responder`. `context` is for the
  // record of a refusal.
  void on_request(protocol::http1::ExchangeId id, protocol::http1::HttpRequest request,
                  protocol::oip::Route route, RequestContext context,
                  protocol::http1::HttpResponder& responder);

 private:
  struct Asked;
  using AskedPtr = std::shared_ptr<Asked>;
  void index(const AskedPtr& asked);
  void load(const AskedPtr& asked);
  void load_decoded(const AskedPtr& asked, Result<protocol::oip::LoadRequestBody, Refusal> decoded);
  void unload(const AskedPtr& asked);
  void answer(const Asked& asked, const Result<void, Refusal>& result);
  void refuse(const Asked& asked, const Refusal& refusal);

  Gateway& gateway_;
  ports::Executor& loop_;
  SideWork& reading_;
  ports::RepositoryControl* control_;
  protocol::json::JsonParser parser_;
  std::unordered_map<uint64_t, SideWork::Ticket> tickets_;  // by exchange: bodies being read
};

}  // namespace baton::service
