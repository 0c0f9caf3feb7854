#include "adapters/instances/placement.h"

#include <pthread.h>
#include <sched.h>

namespace baton::adapters {

Placement place_this_thread(const std::string& name, int cpu) {
  Placement placement;
  placement.thread = name.substr(0, 15);  // the kernel's limit
  pthread_setname_np(pthread_self(), placement.thread.c_str());
  if (cpu >= 0) {
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    CPU_SET(static_cast<size_t>(cpu), &wanted);
    placement.pinned_as_asked = pthread_setaffinity_np(pthread_self(), sizeof wanted, &wanted) == 0;
  }
  cpu_set_t actual;
  CPU_ZERO(&actual);
  if (pthread_getaffinity_np(pthread_self(), sizeof actual, &actual) != 0) return placement;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<size_t>(i), &actual)) placement.cpus.push_back(i);
  }
  if (cpu >= 0) placement.pinned_as_asked &= placement.cpus == std::vector<int>{cpu};
  return placement;
}

}  // namespace baton::adapters
