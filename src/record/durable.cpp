#include "src/record/durable.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "src/base/error.hpp"

namespace chorale {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse(const fs::path& path, int reason = errno) {
  const bool full = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
  const char* const fix = full ? "free some space, or write elsewhere; the old file is intact"
                          : reason == EEXIST
                              ? "move it away, or write elsewhere: existing files are not overwritten"
                              : "check its permissions and its disk, or write elsewhere; the old file is intact";
  throw Error(Exit::runtime, "a file cannot be written", fmt::format("{}: {}", path.string(), std::strerror(reason)), fix);
}

// Blocks SIGXFSZ while this object exists. The destructor discards the signal if it was raised. A write beyond RLIMIT_FSIZE
// sends SIGXFSZ, which would end the process before write() can return EFBIG.
class WithoutSizeSignal {
 public:
  WithoutSizeSignal() {
    sigemptyset(&size_);
    sigaddset(&size_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &size_, &before_);
  }
  ~WithoutSizeSignal() {
    const timespec at_once{};
    while (sigtimedwait(&size_, nullptr, &at_once) == SIGXFSZ) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t size_, before_;
};

}  // namespace

DurableFile::DurableFile(fs::path path) : path_(std::move(path)) {
  file_.reset(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file_) refuse(path_);
}

void DurableFile::write(std::span<const std::byte> bytes) {
  const WithoutSizeSignal held;
  while (!bytes.empty()) {
    const ssize_t put = ::write(file_.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) refuse(path_);
    if (put == 0) refuse(path_, ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void DurableFile::finish() {
  if (fsync(file_.get()) != 0) refuse(path_);
  if (::close(file_.release()) != 0)
    refuse(path_);  // file systems with quotas and network disks can report errors as late
                    // as in close()
}

void write_durably(const fs::path& path, const std::string& text) {
  DurableFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.finish();
}

void make_folder(const fs::path& path) {
  if (mkdir(path.c_str(), 0777) != 0) refuse(path);
}

void sync_folder(const fs::path& path) {
  const Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || (fsync(folder.get()) != 0 && errno != EINVAL)) refuse(path);  // some file systems cannot sync folders
}

void rename_durably(const fs::path& from, const fs::path& to) {
  if (rename(from.c_str(), to.c_str()) != 0) refuse(to);
  sync_folder(to.parent_path());
}

void link_durably(const fs::path& link, const std::string& target) {
  const fs::path next = link.parent_path() / fmt::format(".{}.next", link.filename().string());
  unlink(next.c_str());
  if (symlink(target.c_str(), next.c_str()) != 0) refuse(next);
  rename_durably(next, link);
}

}  // namespace chorale
