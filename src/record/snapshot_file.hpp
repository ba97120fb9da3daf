// A file that is complete at every moment. Even if the writer is killed, readers see the complete contents of one publish().
// Two copies alternate. The hidden copy is updated and synced, and then gets the visible name in one atomic step.
//
//   publish 1    .run.h5.0 ← image 1      run.h5 → .run.h5.0
//   publish 2    .run.h5.1 ← image 2      run.h5 → .run.h5.1      a reader of image 1 keeps its open file
//   publish 3    .run.h5.0 ← the pages that changed since image 1     run.h5 → .run.h5.0
//
// Cost: each changed page is written once to each copy, and unchanged pages are compared. Each publish() does one fsync of
// the file and one of its folder.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>

#include "src/base/descriptor.hpp"

namespace chorale {

class SnapshotFile {
 public:
  // The path must not exist, unless this writer takes over from a writer that died. The dead writer's file then remains
  // until the first publish().
  explicit SnapshotFile(std::filesystem::path path, bool takes_over = false);
  ~SnapshotFile();  // keeps the visible file and removes the hidden copy
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;

  void publish(std::span<const std::byte> image);  // replaces the contents with `image`; after a failure, the old contents
                                                   // remain

 private:
  std::filesystem::path hidden(const char* suffix) const;
  void remove_copies() const;
  void bring_up_to_date(int copy, std::span<const std::byte> image);

  std::filesystem::path path_;
  Descriptor copies_[2];
  int published_ = 0;
};

}  // namespace chorale
