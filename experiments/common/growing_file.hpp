// Reads a text file while another process appends to it. The file can be missing, end in the middle of a line, be truncated
// or be replaced. Only complete lines are returned.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace chorale {

class GrowingFile {
 public:
  struct News {
    bool exists = false;
    bool starts_over = false;  // another file has this path now, or the file was truncated; its lines start from the first
    std::vector<std::string> lines;
  };
  News read(const std::filesystem::path& path);      // the lines that were added since the last call
  double written_at() const { return written_at_; }  // wall-clock time of the last change, in seconds

 private:
  std::string unfinished_;  // an incomplete line
  ino_t inode_ = 0;
  dev_t device_ = 0;
  off_t taken_ = 0;
  double written_at_ = 0;
};

}  // namespace chorale
