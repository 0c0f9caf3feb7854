#include "adapters/log/trace_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace baton::adapters::log {
namespace {

constexpr std::string_view kBegin = "[\n";
constexpr std::string_view kBetween = ",\n";
constexpr std::string_view kEnd = "\n]\n";
constexpr uint64_t kMostNumbers = 1'000'000;

// Ends with what append() ends with.
bool ends_as_array(int descriptor, uint64_t size) {
  std::array<char, kEnd.size()> tail{};
  if (size < kBegin.size() + kEnd.size()) return false;
  const auto at = static_cast<off_t>(size - kEnd.size());
  return pread(descriptor, tail.data(), tail.size(), at) == static_cast<ssize_t>(tail.size()) &&
         std::string_view(tail.data(), tail.size()) == kEnd;
}

}  // namespace

Result<std::unique_ptr<TraceFile>, std::string> TraceFile::open(const std::string& path) {
  std::unique_ptr<TraceFile> file(new TraceFile(path));
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640);
  if (descriptor < 0) return fail(std::string(std::strerror(errno)));
  file->plain_.descriptor = descriptor;
  struct stat info{};
  if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(std::string("it is no regular file"));
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > 0) {
    if (!ends_as_array(descriptor, size)) {
      return fail(std::string("it holds something else; move it away"));
    }
    file->plain_.end = size - kEnd.size();
    file->plain_.empty = false;
  }
  file->thread_ = std::thread([traces = file.get()] { traces->run(); });
  pthread_setname_np(file->thread_.native_handle(), "baton-trace");
  return file;
}

TraceFile::~TraceFile() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    woken_.notify_one();
    thread_.join();
  }
  close_numbered();
  if (plain_.descriptor >= 0) close(plain_.descriptor);
}

void TraceFile::write(std::string_view trace) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (queued_.size() >= kMostTraces) {
      ++dropped_;
      return;
    }
    first = queued_.empty();
    queued_.emplace_back(trace);
  }
  if (first) woken_.notify_one();
}

uint64_t TraceFile::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void TraceFile::run() {
  std::vector<std::string> taken;
  std::unique_lock lock(mutex_);
  for (;;) {
    woken_.wait(lock, [this] { return stop_ || !queued_.empty(); });
    if (queued_.empty()) return;
    taken.clear();
    std::swap(taken, queued_);
    lock.unlock();
    const uint64_t lost = write_all(taken);
    lock.lock();
    dropped_ += lost;
  }
}

uint64_t TraceFile::write_all(const std::vector<std::string>& traces) {
  std::string text;
  for (size_t i = 0; i < traces.size();) {
    uint64_t room = 0;
    if (!choose_file(room)) return traces.size() - i;
    text.clear();
    const size_t count = std::min<uint64_t>(room, traces.size() - i);
    for (size_t j = 0; j < count; ++j) {
      text.append(j == 0 ? std::string_view() : kBetween).append(traces[i + j]);
    }
    if (!append(text)) return traces.size() - i;
    current_->traces += count;
    i += count;
  }
  return 0;
}

bool TraceFile::choose_file(uint64_t& room) {
  const uint64_t frequency = frequency_;
  if (frequency == 0) {
    current_ = &plain_;
    room = UINT64_MAX;
    return true;
  }
  current_ = &numbered_;
  if (numbered_.descriptor >= 0 && (frequency != numbered_for_ || numbered_.traces >= frequency)) {
    close_numbered();
  }
  while (numbered_.descriptor < 0) {
    if (next_number_ >= kMostNumbers) return false;
    const std::string path = path_ + "." + std::to_string(next_number_++);
    numbered_.descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (numbered_.descriptor < 0 && errno != EEXIST) return false;
  }
  numbered_for_ = frequency;
  room = frequency - numbered_.traces;
  return true;
}

void TraceFile::close_numbered() {
  if (numbered_.descriptor >= 0) close(numbered_.descriptor);
  numbered_ = {};
}

// In place of the array's end, with a new one. A write that fails leaves the end where it was.
bool TraceFile::append(std::string_view traces) {
  Array& array = *current_;
  std::string text(array.empty ? kBegin : kBetween);
  text.append(traces);
  const size_t body = text.size();
  text.append(kEnd);
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = pwrite(array.descriptor, text.data() + done, text.size() - done,
                             static_cast<off_t>(array.end + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;  // a full disk: serving goes on without traces
    done += static_cast<size_t>(n);
  }
  array.end += body;
  array.empty = false;
  return true;
}

}  // namespace baton::adapters::log
