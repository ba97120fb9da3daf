// A hidden folder for a file under construction, next to the file's final location, so that readers see only the complete
// file. The constructor also creates the parent folder. The destructor removes the folder with all its contents.
#pragma once
#include <filesystem>
#include <string>

#include "src/base/error.hpp"

namespace chorale {

class ScratchFolder {
 public:
  explicit ScratchFolder(const std::filesystem::path& parent) {
    std::error_code trouble;  // not checked: if the folder cannot be created, mkdtemp fails
    std::filesystem::create_directories(parent, trouble);
    std::string name = (parent / ".chorale-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw Error(Exit::runtime, "a temporary folder cannot be created", name, "choose another place for the record");
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
