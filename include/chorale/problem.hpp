// A Problem is the input of an algorithm: the collective, the number of ranks, and the blocks. Counts are 64-bit numbers of
// elements. The table below shows the buffers of each collective, where n is the length of the complete vector:
//
//   collective       input              output             blocks
//   all_reduce       n                  n                  n, split evenly
//   reduce_scatter   n                  own block          one per rank, any sizes
//   all_gather       own block          n                  one per rank, any sizes
//   broadcast        n (root only)      n                  n, split evenly
//   reduce           n                  n (root only)      n, split evenly
//   gather           own block          n (root only)      one per rank, any sizes
//   scatter          n (root only)      own block          one per rank, any sizes
//   all_to_all       a block for each   a block from each  any sizes; `blocks` are sent, `taken` are received
//   barrier          1 token            the sum of tokens  1 element
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace chorale {

enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  barrier
};
inline constexpr const char* collective_names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce",
                                                   "gather",     "scatter",        "all_to_all", "barrier"};
inline const char* name_of(Collective what) { return collective_names[static_cast<std::size_t>(what)]; }

inline bool reduces(Collective what) {
  return what == Collective::all_reduce || what == Collective::reduce_scatter || what == Collective::reduce;
}
inline bool has_root(Collective what) {
  return what == Collective::broadcast || what == Collective::reduce || what == Collective::gather ||
         what == Collective::scatter;
}

// A vector of elements that is split into consecutive blocks, one per rank.
class Blocks {
 public:
  static Blocks even(std::int64_t count, int size);  // sizes differ by at most one
  Blocks() = default;
  explicit Blocks(const std::vector<std::int64_t>& counts);

  std::int64_t first(int block) const { return starts_[static_cast<std::size_t>(block)]; }
  std::int64_t count(int block) const { return starts_[static_cast<std::size_t>(block) + 1] - first(block); }
  std::int64_t total() const { return starts_.back(); }

 private:
  std::vector<std::int64_t> starts_{0};
};

// Returns the host of each of these ranks. Hosts are numbered in the order in which they first appear. The result is empty
// if all of these ranks are on one host.
std::vector<int> hosts_among(std::span<const int> ranks, const std::vector<int>& hosts);
std::vector<int> hosts_among(const std::vector<int>& hosts);  // the same for all ranks
int number_of_hosts(const std::vector<int>& hosts);           // `hosts` lists each rank's host; empty means one host

struct Problem {
  Collective what;
  int rank = 0;
  int size = 1;
  int root = 0;
  Blocks blocks;
  bool in_place = false;        // whether input and output are parts of one vector (input_home)
  Blocks taken = {};            // all_to_all: the received blocks; `blocks` are the sent blocks
  std::vector<int> hosts = {};  // the host of each rank, in any numbering; empty if there is one host

  // Returns rank 0's problem in the most common case, in which `count` elements are split evenly. For an all_to_all, `count`
  // is the length of one rank's input, and all blocks have count / size elements.
  static Problem even(Collective what, std::int64_t count, int size, int root = 0, bool in_place = false,
                      std::vector<int> hosts = {});
  // Returns the problems of all ranks for an all_to_all in which rank a sends counts[a][b] elements to rank b.
  static std::vector<Problem> exchange(const std::vector<std::vector<std::int64_t>>& counts, bool in_place = false,
                                       const std::vector<int>& hosts = {});
  std::int64_t input_count() const;
  std::int64_t output_count() const;
  Problem at(int other_rank) const;  // the same call on another rank; wrong for an uneven all_to_all (see exchange)
  // takes_block: a rank's input is only its own block of the vector. gives_block: a rank's output is only its own block.
  bool takes_block() const { return what == Collective::all_gather || what == Collective::gather; }
  bool gives_block() const { return what == Collective::reduce_scatter || what == Collective::scatter; }
  // In an in-place call, `input[i]` is element `input_home()` + i of the shared vector, and `output[i]` is element
  // `output_home()` + i.
  std::int64_t input_home() const { return takes_block() ? blocks.first(rank) : 0; }
  std::int64_t output_home() const { return gives_block() ? blocks.first(rank) : 0; }
};

inline int modulo(int a, int size) { return (a % size + size) % size; }  // wraps ranks around a ring

}  // namespace chorale
