// FlagPages holds all flag pages (flag_page.hpp) of one rank, one flag page for each group. After this rank has left a
// group, the rank's flag page stays allocated until all other members have left too. The next create() after all members
// have left frees the flag page. The destructor of FlagPages, at the end of this rank's world, frees all remaining flag
// pages. When the destructor runs, peers in their last call could still read one of these flag pages. The contents of a
// freed flag page stay valid for two reasons. First, this rank's world allocates no more memory. Second, a flag page is so
// small that the arena does not return the memory of the flag page to the system (Arena::kept_bytes). The memory of a flag
// page exists until the last peer unmaps it.
#pragma once
#include <memory>
#include <vector>

#include "collectives/backends/mapped/flag_page.hpp"
#include "collectives/backends/mapped/reach.hpp"

namespace chorale::mapped {

class FlagPages {
 public:
  explicit FlagPages(std::unique_ptr<Reach> reach) : reach_(std::move(reach)) {}

  Reach& reach() const { return *reach_; }
  Buffer create(int members);  // a new flag page; first frees flag pages that all members have left
  void free_later(Buffer page, int members) { left_.push_back({std::move(page), members}); }

 private:
  struct Left {
    Buffer page;
    int members;
  };
  std::unique_ptr<Reach> reach_;
  std::vector<Left> left_;
};

}  // namespace chorale::mapped
