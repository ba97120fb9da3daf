// Orders the turns of a comparison. A turn is one repetition of one run, and turns are grouped into rounds. Each round is
// one sample. Within a round, the order of the runs is random. If the budget is too small, the last rounds are left out
// completely.
//
//   by tokens/s      a sample is a repetition     repetition 1: A C B D | repetition 2: B A D C | …
//   by loss          a sample is a seed           seed 1: A B | seed 2: B A | …, if the suite varies the seed
//
// Each repetition has a round for each seed. The first round also has the runs whose seed is not varied.
#pragma once
#include <string>
#include <vector>

#include "experiments/compare/summary.hpp"

namespace chorale::compare {

// `started`: the number of ranks in the launch. `seed`: the seed of the random order.
std::vector<Repetition> in_rounds(const Suite& suite, int started, std::int64_t seed);
// The name of a round for the user: "repetition" or "seed"; "round" if there are several repetitions and several seeds.
std::string name_of_round(const Suite& suite);

}  // namespace chorale::compare
