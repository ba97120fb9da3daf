// What a call comes to, before a byte moves: whether it works in place, which algorithm solves it, and how many bytes this rank will send.
// A communicator decides here what it runs (route.cpp), and an axis that only pretends what it would run (parallel/axis.cpp), so a plan
// foresees what a run does.
//
//   Call ── key_of ──▶ Key ── problem_of ──▶ Problem ── decide ──▶ Decision {choice, algorithm, bytes sent}
//
// Every rank decides for itself, from what all know alike.
#pragma once
#include <map>
#include <span>
#include <vector>

#include "collectives/algorithms.hpp"
#include "collectives/communicator.hpp"

namespace chorale {

// What makes two calls the same to us.
struct Key {
  Collective what;
  DType dtype;
  Redop op;
  bool in_place;
  int root;
  bool on_device;        // its buffers
  bool is_ours = false;  // made by the communicator itself, which does not care what was chosen for its callers
  std::int64_t count = 0;
  std::vector<std::int64_t> counts = {};  // then those of what is taken
  bool operator==(const Key&) const = default;
  auto operator<=>(const Key&) const = default;
};

// `is_one_vector`: input and output are the same vector, or this rank's block where it lies in that vector.
Key key_of(const Call& call, int size, bool is_one_vector);
bool is_one_vector(const Call& call, int rank, int size);  // by the buffers' addresses

// With counts, they are this rank's row of everybody's where all are known (an uneven all_to_all on mapped memory), else the key's.
Problem problem_of(const Key& key, Counts counts, int rank, int size);

using RequestedAlgorithms = std::map<Collective, Choice>;  // for which collective a user asked for which algorithm
RequestedAlgorithms requested_everywhere(
    const std::string& algorithm);  // for all collectives that know it; a usage error if none does

// What a group goes by when it decides.
struct Preferences {
  std::string backend;
  const Selector& selector;
  const RequestedAlgorithms& asked;
};

struct Decision {
  Choice choice;
  const Algorithm* algorithm = nullptr;  // nullptr: the library's own, "native"
  std::int64_t bytes_sent = -1;          // by this rank; −1: nobody can count it
};

// `everybodys` problems, one a rank, where they are not `problem.at(rank)`. Refuses an algorithm that does not fit on all ranks.
Decision decide(const Key& key, const Problem& problem, std::span<const Problem> everybodys, const Preferences& preferences);

std::string words_for(const Key& key, const Choice& choice);  // "all_reduce of 16 f32, sum, ring, in place"

}  // namespace chorale
