#include "src/base/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "src/base/error.hpp"
#include "src/base/progress.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr spdlog::level::level_enum spdlog_levels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                       spdlog::level::err};

// Whether the console has not shown this warning yet. A suite executes many similar runs in one process, and each run would
// repeat the same warnings. A process has only one console, so the set of shown warnings is global.
bool is_news(const std::string& warning) {
  static std::mutex mutex;
  static std::set<std::string> shown;
  const std::lock_guard lock(mutex);
  return shown.insert(warning).second;
}

}  // namespace

const std::vector<std::string>& Log::levels() {
  static const std::vector<std::string> names{"debug", "info", "warn", "error", "off"};
  return names;
}

Log::Log(const Where& where) {
  const auto found = std::find(levels().begin(), levels().end(), where.level);
  require(found != levels().end(), "unknown log level \"{}\"", where.level);
  console_from_ = where.rank == 0 ? static_cast<Level>(found - levels().begin()) : Level::off;
  if (where.folder.empty()) return;
  auto file =
      std::make_shared<spdlog::sinks::basic_file_sink_mt>((where.folder / fmt::format("rank-{}.log", where.rank)).string());
  file->set_formatter(
      std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %L %v", spdlog::pattern_time_type::utc));
  file_ = std::make_unique<spdlog::logger>("chorale", std::move(file));
  file_->set_level(spdlog::level::debug);
  file_->flush_on(spdlog::level::info);
}

Log::Log(Log&&) noexcept = default;

Log::~Log() {
  if (file_) file_->flush();
}

void Log::write(Level level, std::FILE* console, const std::string& text) {
  const char* marks[] = {"", "", "warning: ", "error: "};  // the console shows no other level names
  const auto index = static_cast<std::size_t>(level);
  const std::string line = marks[index] + escape_control(text);
  if (level >= console_from_ && (level != Level::warn || is_news(line))) {
    Progress::make_way();
    std::fputs((line + "\n").c_str(), console);
    std::fflush(console);  // a pipe gets each line immediately
  }
  if (file_) file_->log(spdlog_levels[index], line);
}

}  // namespace chorale
