// The log of one rank. Rank 0 logs to the console (to stderr, because stdout is for data).
// With a log folder, every rank also writes rank-<r>.log there, with all levels down to `debug`.
//
//   Log log({.rank = rank, .level = "info", .folder = run.folder / "log"});
//   log.info("step {} loss {:.4f}", step, loss);
#pragma once
#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace spdlog {
class logger;
}

namespace chorale {

class Log {
 public:
  struct Where {
    int rank = 0;
    std::string level = "info";         // for the console: debug, info, warn, error or off
    std::filesystem::path folder = {};  // empty: no file
  };
  explicit Log(const Where& where);
  ~Log();
  Log(Log&&) noexcept;

  static const std::vector<std::string>& levels();

  template <class... Args>
  void debug(fmt::format_string<Args...> text, Args&&... args) {
    write(0, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void info(fmt::format_string<Args...> text, Args&&... args) {
    write(1, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void warn(fmt::format_string<Args...> text, Args&&... args) {
    write(2, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void error(fmt::format_string<Args...> text, Args&&... args) {
    write(3, fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  void write(int level, const std::string& text);  // level: an index into levels()
  std::unique_ptr<spdlog::logger> logger_;
};

}  // namespace chorale
