#include "src/base/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr spdlog::level::level_enum spdlog_levels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                       spdlog::level::err, spdlog::level::off};

// Shows each warning once. A suite runs many alike runs in one process, and each of them would give the same warnings.
class Console final : public spdlog::sinks::stderr_sink_mt {
 public:
  void log(const spdlog::details::log_msg& message) override {
    const bool is_warning = message.level == spdlog::level::warn;
    if (!is_warning || is_news({message.payload.data(), message.payload.size()}))
      spdlog::sinks::stderr_sink_mt::log(message);
  }

 private:
  static bool is_news(const std::string& warning) {
    static std::mutex mutex;
    static std::set<std::string> shown;
    const std::lock_guard lock(mutex);
    return shown.insert(warning).second;
  }
};

}  // namespace

const std::vector<std::string>& Log::levels() {
  static const std::vector<std::string> names{"debug", "info", "warn", "error", "off"};
  return names;
}

Log::Log(const Where& where) {
  const auto found = std::find(levels().begin(), levels().end(), where.level);
  require(found != levels().end(), "unknown log level \"{}\"", where.level);
  const auto console_level = spdlog_levels[found - levels().begin()];

  std::vector<spdlog::sink_ptr> sinks;
  if (where.rank == 0) {
    auto console = std::make_shared<Console>();
    console->set_pattern("%v");
    console->set_level(console_level);
    sinks.push_back(std::move(console));
  }
  if (!where.folder.empty()) {
    auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(
        (where.folder / fmt::format("rank-{}.log", where.rank)).string());
    file->set_formatter(
        std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %L %v", spdlog::pattern_time_type::utc));
    sinks.push_back(std::move(file));
  }
  logger_ = std::make_unique<spdlog::logger>("chorale", sinks.begin(), sinks.end());
  logger_->set_level(spdlog::level::debug);
  logger_->flush_on(spdlog::level::info);
}

Log::Log(Log&&) noexcept = default;

Log::~Log() {
  if (logger_) logger_->flush();
}

void Log::write(int level, const std::string& text) {
  const char* marks[] = {"", "", "warning: ", "error: "};  // the console shows no level names
  logger_->log(spdlog_levels[level], marks[level] + escape_control(text));
}

}  // namespace chorale
