// One rank's flag pages (flag_page.hpp) in all its groups. After this rank has left a group, its flag page stays allocated
// until all other members have left too. The next create() frees it, or the destructor of FlagPages does, at the end of this
// rank's world. Peers that are still in their last call may read the flag page even then. By that time this world allocates
// nothing more, and a flag page is too small for the arena to return its memory to the system (Arena::kept_bytes). The
// memory exists until the last peer unmaps it.
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
  Buffer create(int members);  // a new flag page; also frees flag pages that all members have left
  void free_later(Buffer page, int members) { left_.push_back({std::move(page), members}); }  // to be freed later

 private:
  struct Left {
    Buffer page;
    int members;
  };
  std::unique_ptr<Reach> reach_;
  std::vector<Left> left_;
};

}  // namespace chorale::mapped
