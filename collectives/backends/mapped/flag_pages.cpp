#include "collectives/backends/mapped/flag_pages.hpp"

#include <cstring>

#include "src/base/error.hpp"
#include "src/memory/arena.hpp"

namespace chorale::mapped {

Buffer FlagPages::create(int members) {
  std::erase_if(left_, [](Left& left) {
    for (int r = 0; r < left.members; ++r)
      if (load_acquire(member(*static_cast<FlagPage*>(left.page.data()), r).gone) == 0) return false;
    return true;
  });
  require(flag_page_bytes(members) <= Arena::kept_bytes, "{} ranks of one host are too many for a flag page", members);
  Buffer page = reach_->memory().allocate(flag_page_bytes(members), Category::comm);
  // Initializes only flag words, tags and counters, because only these values can be read by peers before the owner writes
  // them.
  auto* fresh = static_cast<FlagPage*>(page.data());
  store_release(fresh->finished, 0);
  store_release(fresh->poisoned, 0);
  store_release(fresh->closed, 0);
  for (Slot& slot : fresh->slot) {
    slot.word = slot.history = 0;
    std::memset(slot.more, 0, sizeof slot.more);
    for (EagerCell& cell : slot.cells) cell.tag = 0;  // the tag of an earlier group can be equal to a tag of this group
  }
  for (int r = 0; r < members; ++r) member(*fresh, r) = Member{};
  return page;
}

}  // namespace chorale::mapped
