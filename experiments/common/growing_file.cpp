#include "experiments/common/growing_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/descriptor.hpp"

namespace chorale {

GrowingFile::News GrowingFile::read(const std::filesystem::path& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  News news{.exists = true};
  if (status.st_ino != inode_ || status.st_dev != device_ || status.st_size < taken_) {
    *this = {};
    inode_ = status.st_ino;
    device_ = status.st_dev;
    news.starts_over = true;
  }
  written_at_ = static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
  std::string part(1 << 16, '\0');
  for (ssize_t got; (got = pread(file.get(), part.data(), part.size(), taken_)) > 0; taken_ += got) {
    unfinished_.append(part, 0, static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end; (end = unfinished_.find('\n', begin)) != std::string::npos; begin = end + 1)
      news.lines.push_back(unfinished_.substr(begin, end - begin));
    unfinished_.erase(0, begin);
  }
  return news;
}

}  // namespace chorale
