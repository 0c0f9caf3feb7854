#include "adapters/log/log_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

namespace baton::adapters::log {
namespace {

constexpr size_t kKeptBytes = 1 << 20;  // a buffer that a burst made larger is given back

std::string missing_line(uint64_t count) {
  return "{\"dropped_lines\":" + std::to_string(count) + "}\n";
}

}  // namespace

LogWriter::LogWriter(int descriptor, bool owned) : descriptor_(descriptor), owned_(owned) {
  struct stat info{};
  regular_ = fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "baton-log");
}

LogWriter::~LogWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  woken_.notify_one();
  thread_.join();
  if (owned_) close(descriptor_);
}

void LogWriter::write(std::string_view line) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (lines_ >= kMostLines || queued_.size() + line.size() + 1 > kMostBytes) {
      ++refused_;
      return;
    }
    first = lines_++ == 0;
    queued_.append(line) += '\n';
  }
  if (first) woken_.notify_one();
}

uint64_t LogWriter::dropped() const {
  const std::lock_guard lock(mutex_);
  return refused_ + lost_;
}

void LogWriter::run() {
  std::string taken;
  std::unique_lock lock(mutex_);
  for (;;) {
    woken_.wait(lock, [this] { return stop_ || lines_ > 0; });
    if (lines_ == 0) return;
    woken_.wait_for(lock, kGathered, [this] { return stop_.load(); });
    taken.clear();
    std::swap(taken, queued_);  // the two keep their memory
    lines_ = 0;
    const uint64_t refused = refused_;
    lock.unlock();
    const uint64_t lost = write_lines(taken, refused);
    if (taken.capacity() > kKeptBytes) taken = {};
    lock.lock();
    lost_ += lost;
  }
}

// Lines that an earlier write lost are missing before these, lines without room behind them.
uint64_t LogWriter::write_lines(std::string& lines, uint64_t refused) {
  const size_t body = lines.size();
  if (refused != told_refused_) lines += missing_line(refused - told_refused_);
  std::string head = torn_ ? "\n" : "";
  if (untold_lost_ > 0) head += missing_line(untold_lost_);
  if (!head.empty()) lines.insert(0, head);

  const size_t written = write_all(lines);
  if (written > 0) torn_ = lines[written - 1] != '\n';
  if (written >= head.size()) untold_lost_ = 0;
  if (written == lines.size()) {
    told_refused_ = refused;
    return 0;
  }
  const std::string_view queued = std::string_view(lines).substr(0, head.size() + body);
  const size_t from = std::max(std::min(written, queued.size()), head.size());
  const auto lost = static_cast<uint64_t>(std::ranges::count(queued.substr(from), '\n'));
  untold_lost_ += lost;
  return lost;
}

// False when the process ends and nobody has read for a second.
bool LogWriter::wait_writable() {
  constexpr int kStepMs = 100;
  for (int waited = 0; waited < 1000;) {
    pollfd watched{descriptor_, POLLOUT, 0};
    if (poll(&watched, 1, kStepMs) != 0) return true;
    if (stop_) waited += kStepMs;
  }
  return false;
}

size_t LogWriter::write_all(std::string_view text) {
  // What a pipe takes without waiting once it is writable.
  constexpr size_t kPipeStep = 4096;
  size_t done = 0;
  while (done < text.size()) {
    if (!regular_ && !wait_writable()) return done;
    const size_t step = regular_ ? text.size() - done : std::min(text.size() - done, kPipeStep);
    const ssize_t n = ::write(descriptor_, text.data() + done, step);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return done;  // a full disk or a closed pipe: serving goes on without a log
    done += static_cast<size_t>(n);
  }
  return done;
}

namespace {

int open_for_append(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

}  // namespace

bool LogWriter::reopen(const std::string& path) const {
  struct stat info{};
  if (!owned_ || fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) return true;
  const int descriptor = open_for_append(path);
  if (descriptor < 0) return false;
  // In the place of the former one at once: the writing thread knows the number alone.
  const bool done = dup3(descriptor, descriptor_, O_CLOEXEC) == descriptor_;
  close(descriptor);
  return done;
}

std::unique_ptr<LogWriter> open_log(const std::string& path) {
  if (path == "-") return std::make_unique<LogWriter>(STDOUT_FILENO, false);
  const int descriptor = open_for_append(path);
  if (descriptor < 0) return nullptr;
  return std::make_unique<LogWriter>(descriptor, true);
}

namespace {

constexpr int kVerboseShift = 32;

uint64_t bit_of(ports::LogLevel level) {
  return uint64_t{1} << static_cast<int>(level);
}

uint64_t pack(const LogSettings& settings) {
  uint64_t bits = uint64_t{settings.verbose_level} << kVerboseShift;
  if (settings.verbose_level > 0) bits |= bit_of(ports::LogLevel::kDebug);
  if (settings.info) bits |= bit_of(ports::LogLevel::kInfo);
  if (settings.warning) bits |= bit_of(ports::LogLevel::kWarning);
  if (settings.error) bits |= bit_of(ports::LogLevel::kError);
  return bits;
}

}  // namespace

LogSettings settings_from(ports::LogLevel least) {
  return {.info = least <= ports::LogLevel::kInfo,
          .warning = least <= ports::LogLevel::kWarning,
          .error = true,
          .verbose_level = least == ports::LogLevel::kDebug ? 1U : 0U};
}

TextLog::TextLog(ports::LogSink& sink, const ports::Clock& clock, ports::LogLevel least)
    : sink_(sink), clock_(clock), settings_(pack(settings_from(least))) {}

LogSettings TextLog::settings() const {
  const uint64_t bits = settings_.load(std::memory_order_relaxed);
  return {.info = (bits & bit_of(ports::LogLevel::kInfo)) != 0,
          .warning = (bits & bit_of(ports::LogLevel::kWarning)) != 0,
          .error = (bits & bit_of(ports::LogLevel::kError)) != 0,
          .verbose_level = static_cast<uint32_t>(bits >> kVerboseShift)};
}

void TextLog::apply(const LogSettings& settings) {
  settings_.store(pack(settings), std::memory_order_relaxed);
}

void TextLog::log(ports::LogLevel level, std::string message) {
  if ((settings_.load(std::memory_order_relaxed) & bit_of(level)) == 0) return;
  static constexpr std::array<const char*, 4> kLevels = {"DEBUG", "INFO ", "WARN ", "ERROR"};
  const int64_t ns = clock_.wall().unix_ns;
  const std::time_t seconds = ns / 1'000'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 40> time{};
  const size_t length = std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::string line(time.data(), length);
  const std::string ms = std::to_string(1000 + ns / 1'000'000 % 1000);
  line.append(".").append(ms, 1).append("Z ");
  line.append(kLevels[static_cast<size_t>(level)]).append(" ").append(message);
  sink_.write(line);
}

}  // namespace baton::adapters::log
