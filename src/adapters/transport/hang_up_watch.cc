#include "adapters/transport/hang_up_watch.h"

#include <sys/epoll.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <utility>

#include "adapters/transport/loop_impl.h"
#include "base/check.h"

namespace baton::adapters::transport {

using Descriptor = boost::asio::posix::stream_descriptor;

struct HangUpWatch::Impl {
  Impl(WorkerLoop& owner, std::move_only_function<void(uint32_t)> tell)
      : loop(owner), gone(std::move(tell)), descriptor(owner.impl().io) {}

  void arm();
  void tell_all();

  WorkerLoop& loop;
  std::move_only_function<void(uint32_t)> gone;
  Descriptor descriptor;  // of an epoll set, itself readable when one of its sockets has news
  uint32_t events = 0;    // resets are always told
};

void HangUpWatch::Impl::arm() {
  descriptor.async_wait(Descriptor::wait_read, [this](const boost::system::error_code& error) {
    const Turn turn(loop);
    if (error) return;
    tell_all();
    arm();
  });
}

void HangUpWatch::Impl::tell_all() {
  std::array<epoll_event, 64> news{};  // what is beyond them makes the set readable again
  const int count =
      ::epoll_wait(descriptor.native_handle(), news.data(), static_cast<int>(news.size()), 0);
  for (int i = 0; i < count; ++i) gone(news[static_cast<size_t>(i)].data.u32);
}

HangUpWatch::HangUpWatch(WorkerLoop& loop, bool half_closed_is_gone,
                         std::move_only_function<void(uint32_t)> gone)
    : impl_(std::make_unique<Impl>(loop, std::move(gone))) {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  BATON_CHECK(set >= 0);
  impl_->descriptor.assign(set);
  impl_->events = half_closed_is_gone ? uint32_t{EPOLLRDHUP} : 0;
  impl_->arm();
}

HangUpWatch::~HangUpWatch() = default;

void HangUpWatch::add(int socket, uint32_t key) {
  epoll_event event{};
  event.events = impl_->events | EPOLLONESHOT;
  event.data.u32 = key;
  // Without memory for the entry the client's end is seen when it is written to.
  static_cast<void>(::epoll_ctl(impl_->descriptor.native_handle(), EPOLL_CTL_ADD, socket, &event));
}

void HangUpWatch::remove(int socket) {
  static_cast<void>(::epoll_ctl(impl_->descriptor.native_handle(), EPOLL_CTL_DEL, socket, nullptr));
}

}  // namespace baton::adapters::transport
