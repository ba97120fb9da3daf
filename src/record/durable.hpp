// Writing that holds: what these functions return from is on the disk, or they throw with the path and the reason. A new file is first
// written and synced under a name that nobody reads, then renamed; the rename holds when the folder has been synced too.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "src/base/descriptor.hpp"

namespace chorale {

// A new file, readable by whom the umask lets. Where the file may grow no further (RLIMIT_FSIZE) a write throws; the signal that would end the
// process instead is held back while we write.
class DurableFile {
 public:
  explicit DurableFile(std::filesystem::path path);  // which must not exist
  void write(std::span<const std::byte> bytes);
  void finish();  // synced and closed

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

void write_durably(const std::filesystem::path& path, const std::string& text);
void make_folder(const std::filesystem::path& path);  // must not exist
void sync_folder(const std::filesystem::path& path);
void rename_durably(const std::filesystem::path& from,
                    const std::filesystem::path& to);  // within one folder, which is synced
void link_durably(const std::filesystem::path& link,
                  const std::string& target);  // a symbolic link, moved into its place whole

}  // namespace chorale
