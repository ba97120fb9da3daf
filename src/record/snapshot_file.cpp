#include "src/record/snapshot_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "src/base/error.hpp"

namespace chorale {
namespace {

constexpr std::size_t page = 4096;

[[noreturn]] void refuse_snapshot(const std::filesystem::path& path) {
  const int reason = errno;
  throw Error(Exit::runtime, "the record cannot be written", fmt::format("{}: {}", path.string(), std::strerror(reason)),
              "check the disk's free space and permissions, or choose another --run-dir; an earlier record there is intact");
}

}  // namespace

SnapshotFile::SnapshotFile(std::filesystem::path path, bool takes_over) : path_(std::move(path)) {
  if (!takes_over && std::filesystem::exists(path_)) {
    errno = EEXIST;
    refuse_snapshot(path_);
  }
  if (takes_over) remove_copies();  // removes the hidden files of the writer that died; its visible file remains
  for (int copy : {0, 1}) {
    const auto name = hidden(copy ? "1" : "0");
    copies_[copy].reset(open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!copies_[copy]) refuse_snapshot(name);
  }
}

SnapshotFile::~SnapshotFile() { remove_copies(); }

void SnapshotFile::remove_copies() const {
  for (const char* suffix : {"0", "1", "new"}) unlink(hidden(suffix).c_str());
}

std::filesystem::path SnapshotFile::hidden(const char* suffix) const {
  return path_.parent_path() / fmt::format(".{}.{}", path_.filename().string(), suffix);
}

void SnapshotFile::publish(std::span<const std::byte> image) {
  const int copy = published_ % 2;
  bring_up_to_date(copy, image);
  // Creates a second hard link to the updated copy, and then renames this link to the visible name. Readers see only the
  // atomic rename.
  const auto name = hidden(copy ? "1" : "0"), next = hidden("new");
  unlink(next.c_str());
  if (link(name.c_str(), next.c_str()) != 0 || rename(next.c_str(), path_.c_str()) != 0) refuse_snapshot(path_);
  const Descriptor folder(open(path_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || (fsync(folder.get()) != 0 && errno != EINVAL))
    refuse_snapshot(path_);  // some file systems cannot sync folders
  ++published_;
}

void SnapshotFile::bring_up_to_date(int copy, std::span<const std::byte> image) {
  const int fd = copies_[copy].get();
  const auto name = hidden(copy ? "1" : "0");
  std::vector<std::byte> there(64 * page);
  for (std::size_t at = 0; at < image.size(); at += there.size()) {
    const auto wanted = image.subspan(at, std::min(there.size(), image.size() - at));
    const ssize_t got = pread(fd, there.data(), wanted.size(), static_cast<off_t>(at));
    if (got < 0) refuse_snapshot(name);
    for (std::size_t first = 0; first < wanted.size(); first += page) {
      const auto part = wanted.subspan(first, std::min(page, wanted.size() - first));
      const bool same = first + part.size() <= static_cast<std::size_t>(got) &&
                        std::memcmp(part.data(), there.data() + first, part.size()) == 0;
      if (same) continue;
      const ssize_t put = pwrite(fd, part.data(), part.size(), static_cast<off_t>(at + first));
      if (put >= 0 && put < static_cast<ssize_t>(part.size())) errno = ENOSPC;
      if (put != static_cast<ssize_t>(part.size())) refuse_snapshot(name);
    }
  }
  if (ftruncate(fd, static_cast<off_t>(image.size())) != 0 || fsync(fd) != 0) refuse_snapshot(name);
}

}  // namespace chorale
