// The log of one rank. Rank 0 also shows its log on the console. If there is a log folder, every rank writes messages of all
// levels to a file rank-<r>.log in that folder.
//
//   Log log({.rank = rank, .level = "info", .folder = run.folder / "log"});
//   log.result("step {} loss {:.4f}", step, loss);         stdout: the results of the command; `train > file` keeps them
//   log.info("network interfaces: {}", words);             stderr: everything else
#pragma once
#include <fmt/core.h>

#include <cstdio>
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
    std::string level = "info";         // lowest level that the console shows: debug, info, warn, error or off
    std::filesystem::path folder = {};  // empty: no file
  };
  explicit Log(const Where& where);
  ~Log();
  Log(Log&&) noexcept;

  static const std::vector<std::string>& levels();

  template <class... Args>
  void debug(fmt::format_string<Args...> text, Args&&... args) {
    write(Level::debug, stderr, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void info(fmt::format_string<Args...> text, Args&&... args) {
    write(Level::info, stderr, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void result(fmt::format_string<Args...> text, Args&&... args) {  // logs at level info
    write(Level::info, stdout, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void warn(fmt::format_string<Args...> text, Args&&... args) {
    write(Level::warn, stderr, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void error(fmt::format_string<Args...> text, Args&&... args) {
    write(Level::error, stderr, fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  enum class Level { debug, info, warn, error, off };  // in the order of levels()
  void write(Level level, std::FILE* console, const std::string& text);

  Level console_from_;  // the console shows this level and all levels above it
  std::unique_ptr<spdlog::logger> file_;
};

}  // namespace chorale
