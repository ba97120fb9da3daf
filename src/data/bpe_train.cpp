// Learns a byte-pair encoding. The text is stored as a multiset of pre-tokens. Each merge takes the most frequent pair from
// a heap, rewrites only the pre-tokens that contain this pair, and corrects the counts of all pairs in these pre-tokens. A
// heap entry with an outdated count is pushed back with the current count. No two tokens have the same text, because equal
// substrings are merged in the same way unless a merge crosses the end of a substring.
#include <algorithm>
#include <map>
#include <queue>

#include "src/base/error.hpp"
#include "src/base/hash.hpp"
#include "src/data/bpe.hpp"

namespace chorale {
namespace {

using Pair = Tokenizer::Merge;

struct CountedPiece {
  std::vector<std::int32_t> tokens;
  std::int64_t count = 0;
};

struct PairCandidate {
  std::int64_t count;
  Pair pair;
  // The most frequent pair is on top. If counts are equal, the smaller pair is on top, so that every run learns the same
  // merges.
  bool operator<(const PairCandidate& other) const { return count != other.count ? count < other.count : pair > other.pair; }
};

struct PairHash {
  std::size_t operator()(const Pair& pair) const {
    return hash_with(static_cast<std::uint64_t>(pair[0]), static_cast<std::uint64_t>(pair[1]));
  }
};

class Learner {
 public:
  explicit Learner(std::string_view text) {
    std::map<std::string_view, std::int64_t> counts;  // ordered, so that the result does not depend on a hash
    std::string_view next;
    for (Pieces pieces(text); pieces.next(next);) ++counts[next];
    for (const auto& [piece, count] : counts) {
      CountedPiece& made = pieces_.emplace_back(CountedPiece{{}, count});
      for (const char c : piece) made.tokens.push_back(static_cast<unsigned char>(c));
      add(pieces_.size() - 1, 1);
    }
    for (const auto& [pair, found] : pairs_) heap_.push({found.count, pair});
  }

  // Merges the most frequent pair into `token`. Returns false if no pair occurs twice.
  bool merge(std::int32_t token, Pair& merged) {
    while (!heap_.empty()) {
      const PairCandidate top = heap_.top();
      heap_.pop();
      const std::int64_t count = pairs_[top.pair].count;
      if (count != top.count) {
        if (count > 0) heap_.push({count, top.pair});
        continue;
      }
      if (count < 2) return false;
      merged = top.pair;
      rewrite(top.pair, token);
      return true;
    }
    return false;
  }

 private:
  struct Found {
    std::int64_t count = 0;
    std::vector<std::size_t> pieces;  // indices of the pre-tokens that contain the pair or previously contained it
  };

  // Adds the pairs of a pre-token to the counts (sign 1) or removes them from the counts (sign −1).
  void add(std::size_t index, std::int64_t sign) {
    const CountedPiece& piece = pieces_[index];
    for (std::size_t i = 0; i + 1 < piece.tokens.size(); ++i) {
      const Pair pair{piece.tokens[i], piece.tokens[i + 1]};
      Found& found = pairs_[pair];
      found.count += sign * piece.count;
      if (sign > 0 && (found.pieces.empty() || found.pieces.back() != index)) found.pieces.push_back(index);
    }
  }

  void rewrite(Pair pair, std::int32_t token) {
    std::vector<std::size_t> touched = std::move(pairs_[pair].pieces);
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    std::vector<Pair> made;
    for (const std::size_t index : touched) {
      std::vector<std::int32_t>& tokens = pieces_[index].tokens;
      add(index, -1);
      std::size_t to = 0;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool here = i + 1 < tokens.size() && tokens[i] == pair[0] && tokens[i + 1] == pair[1];
        tokens[to++] = here ? token : tokens[i];
        i += here;
      }
      tokens.resize(to);
      add(index, 1);
      for (std::size_t i = 0; i + 1 < to; ++i)
        if (tokens[i] == token || tokens[i + 1] == token) made.push_back({tokens[i], tokens[i + 1]});
    }
    std::sort(made.begin(), made.end());
    made.erase(std::unique(made.begin(), made.end()), made.end());
    for (const Pair& fresh : made) heap_.push({pairs_[fresh].count, fresh});
  }

  std::vector<CountedPiece> pieces_;
  std::unordered_map<Pair, Found, PairHash> pairs_;
  std::priority_queue<PairCandidate> heap_;
};

}  // namespace

Tokenizer train_bpe(std::string_view text, std::int64_t vocabulary, const std::function<void(std::int64_t)>& progress) {
  if (vocabulary < 256 || vocabulary > 1 << 24)
    usage_error("a byte-level vocabulary cannot have this size", fmt::format("{} tokens", vocabulary),
                "choose 256 (bytes alone) to 2^24");
  Learner learner(text);
  std::vector<Pair> merges;
  Pair merged{};
  while (static_cast<std::int64_t>(merges.size()) + 256 < vocabulary &&
         learner.merge(static_cast<std::int32_t>(256 + merges.size()), merged)) {
    merges.push_back(merged);
    if (progress) progress(static_cast<std::int64_t>(merges.size()));
  }
  return Tokenizer(std::move(merges));
}

}  // namespace chorale
