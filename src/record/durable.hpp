// Durable writes: when one of the functions returns, the data that it wrote is on the disk. On failure, each function throws
// an error with the path and the reason. To replace a file, write and sync the new file under a temporary name. Then rename
// the new file with rename_durably, which also syncs the folder.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "src/base/descriptor.hpp"

namespace chorale {

// A new file with the permissions that the umask allows. A write beyond the file-size limit (RLIMIT_FSIZE) throws and does
// not end the process, because SIGXFSZ is blocked during writes.
class DurableFile {
 public:
  explicit DurableFile(std::filesystem::path path);  // creates the file, which must not exist yet
  void write(std::span<const std::byte> bytes);
  void finish();  // syncs and closes

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

void write_durably(const std::filesystem::path& path, const std::string& text);
void make_folder(const std::filesystem::path& path);  // the folder must not exist
void sync_folder(const std::filesystem::path& path);
void rename_durably(const std::filesystem::path& from,
                    const std::filesystem::path& to);  // both paths are in one folder, which is synced after the rename
void link_durably(const std::filesystem::path& link,
                  const std::string& target);  // creates or atomically replaces a symbolic link

}  // namespace chorale
