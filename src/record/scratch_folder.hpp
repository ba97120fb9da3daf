// A hidden folder beside a file that is still being made, so that whoever sees the file sees it whole. It goes with all that is left in it.
#pragma once
#include <filesystem>
#include <string>

#include "src/base/error.hpp"

namespace chorale {

class ScratchFolder {
 public:
  explicit ScratchFolder(const std::filesystem::path& parent) {
    std::string name = (parent / ".chorale-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw Error(Exit::runtime, "no folder can be made", name, "choose another place for the record");
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace chorale
