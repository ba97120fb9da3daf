// Decides what a call will do before any data are sent: whether it works in place, which algorithm it runs, and how many
// bytes this rank sends. Communicators (route.cpp) and the axes of a plan (mesh/pretended_axis.cpp) share this code, so a
// plan predicts exactly what a run does.
//
//   Call ── key_of ──▶ Key ── problem_of ──▶ Problem ── decide ──▶ Decision {choice, algorithm, bytes sent}
//
// Every rank makes the same decision by itself, from facts that all ranks share.
#pragma once
#include <map>
#include <span>
#include <vector>

#include <chorale/algorithm.hpp>
#include <chorale/communicator.hpp>
#include "collectives/choice/selection.hpp"

namespace chorale {

// Calls with equal keys share one plan.
struct Key {
  Collective what;
  DType dtype;
  Redop op;
  bool in_place;
  int root;
  bool on_device;        // whether the call's buffers are on a device
  bool is_ours = false;  // the communicator itself makes this call, as in split(); requested algorithms do not apply
  std::int64_t count = 0;
  std::vector<std::int64_t> counts = {};  // the call's counts, followed by `taken`
  bool operator==(const Key&) const = default;
  auto operator<=>(const Key&) const = default;
};

// Whether a call, or its key, is an all_to_all in which each rank passes the sizes of its own blocks. These sizes may change
// from call to call, for example when tokens are routed to experts.
bool is_uneven_exchange(const auto& call) { return call.what == Collective::all_to_all && !call.counts.empty(); }

// `is_one_vector`: input and output are the same vector, or one of them is this rank's block in the other.
Key key_of(const Call& call, int size, bool is_one_vector);
bool is_one_vector(const Call& call, int rank, int size);  // compares the buffers' addresses

// `counts` are key.counts. An uneven all_to_all is an exception if the transport needs the plans of all ranks. Then
// key.counts has one row per rank, and `counts` is the row of `rank`. `hosts`: the host of each
// rank (Problem::hosts).
Problem problem_of(const Key& key, Counts counts, int rank, int size, const std::vector<int>& hosts);

using RequestedAlgorithms = std::map<Collective, Choice>;  // what users asked for, by collective
// Requests this algorithm for all collectives that have it. If none has it, throws a usage error.
RequestedAlgorithms requested_everywhere(const std::string& algorithm);

// The backend and the preferences of a group. Together with the call they determine the decision.
struct Preferences {
  std::string backend;
  const Selector& selector;
  const RequestedAlgorithms& asked;
};

struct Decision {
  Choice choice;
  const Algorithm* algorithm = nullptr;  // nullptr: the library's own collective, "native"
  std::int64_t bytes_sent = -1;          // by this rank; −1: unknown
  std::int64_t bytes_crossing = -1;      // of these, to ranks on other hosts
};

// `everybodys` holds the problems of all ranks if those are not problem.at(0), problem.at(1), …; otherwise it is empty.
// Throws if the algorithm does not fit on every rank.
Decision decide(const Key& key, const Problem& problem, std::span<const Problem> everybodys, const Preferences& preferences);

std::string words_for(const Key& key, const Choice& choice);  // "all_reduce of 16 f32, sum, ring, in place"

}  // namespace chorale
