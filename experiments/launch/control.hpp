// A socket in the folder of a launch, by which `chorale resize` reaches its supervisor. Only the same user is heard. A
// request is one line of text, and so is the answer.
//
//   chorale resize 3 runs/latest ── "resize 3" ──▶ RUN/control ── supervisor ── "ok: …" or "error: …" ──▶ chorale resize
#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "src/base/descriptor.hpp"

namespace chorale::launch {

class Control {
 public:
  explicit Control(const std::filesystem::path& folder);  // a folder without a socket, on some file systems, is no error
  ~Control();
  // Answers at most one waiting request. Never waits.
  void serve(const std::function<std::string(const std::string& request)>& answer);

 private:
  std::filesystem::path path_;
  Descriptor listening_;
};

// Sends a request to the supervisor of a launch, and returns the answer. Throws a usage error if there is no supervisor.
std::string ask_supervisor(const std::filesystem::path& folder, const std::string& request);

}  // namespace chorale::launch
