// Saves and loads checkpoints on several hosts, which do not always share a file system. A set (the files of one step) has a
// folder on each file system. Each folder holds the files of all ranks that can access the folder, and a copy of the
// complete manifest. The first of these ranks is called the maker of the folder. The maker creates the folder and renames it
// to its final name.
//
//   n0: step-50/ manifest.json rank-0 rank-1     n1: step-50/ manifest.json rank-2 rank-3     the makers are ranks 0 and 2
//
// To load a set, every rank needs all files. So without a shared file system, the user must first copy the files to each
// host.
#pragma once
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "parallel/state/checkpoint.hpp"

namespace chorale {

// The folder of a set while the ranks write it: step-50.partial.
class PartialSet {
 public:
  PartialSet(std::filesystem::path folder, std::int64_t step, const Peers& peers);

  // Runs one stage of the save and returns the strings that stage() returned on all ranks. If stage() throws on a rank, that
  // rank throws the same error again. The other ranks throw an error that names that rank.
  template <class Stage>
  std::vector<std::string> together(Stage&& stage) const {
    std::string mine = "+";
    std::exception_ptr failure;
    try {
      mine += stage();
    } catch (const std::exception& error) {
      failure = std::current_exception();
      mine = std::string("-") + error.what();
    }
    return agreed(std::move(mine), failure);
  }

  int make();  // creates the folder on every file system; returns the number of file systems
  bool is_maker() const { return maker_ == peers_.rank; }
  const std::filesystem::path& folder() const { return folder_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::vector<std::string> agreed(std::string mine, const std::exception_ptr& failure) const;
  std::string make_here() const;

  const Peers& peers_;
  const std::filesystem::path folder_, path_;
  int maker_ = -1;
};

// Collective. Throws a usage error if a file of this set exists on some hosts and is missing on others.
void require_on_all_hosts(const std::filesystem::path& set, const Peers& peers);

}  // namespace chorale
