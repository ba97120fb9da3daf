// Determines where the data of a rank's sends lie in the rank's stage (program.hpp). Data that the schedule never changes
// are copied to the stage once, even if several sends overlap. So the root of a broadcast fills its stage once for all
// ranks.
//
//   input    | sent to 1 | sent to 2 and 3 | … |  never written   ──▶  | all that is sent, once |
//   output   | written, then sent | …                             ──▶  | send | send | …         each begins at a line
#pragma once
#include <vector>

#include "collectives/backends/mapped/program.hpp"

namespace chorale::mapped {

struct StageLayout {
  StageLayout(const Schedule& schedule, const StagingRule& staging);

  struct Message {
    std::int64_t at = -1;  // position of the message in the stage, in elements; −1 if the message is too long for the stage
    Range fill = {};       // what this send copies to the stage; no elements if an earlier send has copied the message
    std::int64_t fill_at = 0;
  };
  std::vector<Message> messages;  // indexed by step
  std::int64_t lines = 0;
};

}  // namespace chorale::mapped
