// Chorale's exception type. An Error carries three lines for the user (what is wrong, the numbers, the fix), the source
// location, and the program's exit code.
//
//   error: batch sizes do not divide                       what
//     global_batch_size 24 is not a multiple of 16         the numbers
//     try 16 or 32                                         the fix
#pragma once
#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace chorale {

enum class Exit : int { ok = 0, runtime = 1, usage = 2, check = 3, watchdog = 4 };

class Error : public std::runtime_error {
 public:
  Error(Exit exit, std::string what, std::string numbers, std::string fix,
        std::source_location where = std::source_location::current());
  // Creates an error with any number of lines after the first line.
  Error(Exit exit, const std::string& what, const std::vector<std::string>& lines,
        std::source_location where = std::source_location::current());

  Exit exit() const { return exit_; }
  const std::source_location& where() const { return where_; }

 private:
  Exit exit_;
  std::source_location where_;
};

// Thrown when this rank cannot continue because a different rank failed or left first. If the other rank has printed its
// error, this error need not be printed.
class Consequence : public Error {
 public:
  Consequence(std::string what, std::string numbers, std::string fix,
              std::source_location where = std::source_location::current())
      : Error(Exit::runtime, std::move(what), std::move(numbers), std::move(fix), where) {}
};

// Throws an error for a request that is impossible: exit code 2, three lines, no source location.
[[noreturn]] void usage_error(std::string what, std::string numbers, std::string fix,
                              std::source_location where = std::source_location::current());

}  // namespace chorale
