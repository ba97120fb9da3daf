// Snapshots in the memory of a host are lost with the host. So each rank has a buddy, which is a rank on another host and
// keeps a copy of the rank's snapshots.
//
//   host n0     rank 0   w  m/0        buddy: rank 2, which holds w too. Only m/0 is sent.
//   host n1     rank 2   w  m/1        buddy: rank 0. Its file has only m/1, because a part is saved once.
//
// Copies of a part that other ranks hold anyway are not sent: the buddy copies its own. The buddy of a rank is therefore the
// rank that holds most bytes of the rank's file. If several ranks hold equally much, it is on the next host, and is buddy of
// the fewest bytes so far.
#pragma once
#include <string>
#include <vector>

#include "parallel/state/parts.hpp"

namespace chorale {

// A part of the state, as a rank tells it to the other ranks.
struct HeldPart {
  std::string name;  // of the tensor and of the part
  std::int64_t bytes = 0;
  bool saved = false;  // whether it is in this rank's file; otherwise the rank holds a copy
};
std::vector<HeldPart> held_parts(const std::vector<StateTensor>& state);
std::string name_of_part(const StateTensor& tensor);

std::string text_of(const std::vector<HeldPart>& parts);
std::vector<HeldPart> held_parts_in(const std::string& text);

// Returns the buddy of each rank; −1 if all ranks are on one host. `hosts`: the host of each rank.
std::vector<int> buddies_of(const std::vector<int>& hosts, const std::vector<std::vector<HeldPart>>& parts);

}  // namespace chorale
