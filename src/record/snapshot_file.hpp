// A file that is whole at every moment: whoever opens it sees one published image, never a half-written one, however and
// whenever its writer is killed. Two copies take turns; the one that nobody sees is brought up to date, synced, and then takes the
// visible name in one step.
//
//   publish 1    .run.h5.0 ← image 1      run.h5 → .run.h5.0
//   publish 2    .run.h5.1 ← image 2      run.h5 → .run.h5.1      the reader of image 1 keeps what it opened
//   publish 3    .run.h5.0 ← what changed since image 1, page by page     run.h5 → .run.h5.0
//
// Cost: the changed pages, written once to each copy; a look at all the others; one fsync of the file and one of its folder.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>

#include "src/base/descriptor.hpp"

namespace chorale {

class SnapshotFile {
 public:
  // The path must not exist, unless its writer died and this one takes over: what it published stays until the first image comes.
  explicit SnapshotFile(std::filesystem::path path, bool takes_over = false);
  ~SnapshotFile();  // the last image stays; the spare copy goes
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;

  void publish(std::span<const std::byte> image);  // throws when the disk refuses; the old image then stays

 private:
  std::filesystem::path hidden(const char* suffix) const;
  void remove_copies() const;
  void bring_up_to_date(int copy, std::span<const std::byte> image);

  std::filesystem::path path_;
  Descriptor copies_[2];
  int published_ = 0;
};

}  // namespace chorale
