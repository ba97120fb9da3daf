// Tests that random damage to a checkpoint of three ranks is always detected. The error must name the damaged file, and the
// older set must be loaded. MUTATIONS is the number of damaged sets. SEED selects different random damage.
#include <fmt/format.h>

#include "tests/files.hpp"
#include "tests/parallel/state/saved_state.hpp"
#include "tests/spmd.hpp"
#include "tests/tally.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {
namespace {

namespace fs = std::filesystem;
constexpr int ranks_of_set = 3;

void save_on_three_ranks(const fs::path& folder, std::int64_t step) {
  std::vector<KnownState> states(ranks_of_set);
  for (std::size_t t = 0; t < known_tensors().size(); ++t) {
    const std::int64_t count = elements_of(known_tensors()[t].shape), share = count / ranks_of_set;
    for (std::int64_t rank = 0; rank < ranks_of_set; ++rank)
      states[static_cast<std::size_t>(rank)].add(
          t, {.shard = {}, .first = rank * share, .count = rank + 1 < ranks_of_set ? share : count - rank * share});
  }
  Exchange exchange(ranks_of_set);
  const std::string failed = on_threads(ranks_of_set, [&](ThreadRank& me) {
    KnownState& mine = states[static_cast<std::size_t>(me.rank())];
    mine.fill(step);
    save_checkpoint(folder, known_metadata(step), mine.tensors, exchange.peers(me.rank()));
  });
  REQUIRE(failed == "");
}

// Damages files of the newest set at random, and knows which files an error must name.
class Damage {
 public:
  Damage(const fs::path& newest, const fs::path& older, std::mt19937_64& chance)
      : newest_(newest), older_(older), chance_(chance) {
    names_ = {"manifest.json"};
    for (int rank = 0; rank < ranks_of_set; ++rank) names_.push_back(fmt::format("rank-{}.safetensors", rank));
    for (const std::string& name : names_) good_.push_back(bytes_in(newest / name));
  }

  void repair() const {
    for (std::size_t i = 0; i < names_.size(); ++i) put_bytes(newest_ / names_[i], good_[i]);
  }

  // Returns the numbers of the damaged files.
  std::vector<std::size_t> apply() {
    const std::size_t file = below(names_.size()), rank = 1 + below(ranks_of_set), other = 1 + rank % ranks_of_set;
    std::string bytes = good_[file];
    tensor_data_ = false;
    switch (const std::size_t kind = below(8)) {
      case 0: fs::remove(newest_ / names_[file]); return {file};
      case 1: return from_older_set(file);
      case 2:
        put(rank, good_[other]);
        put(other, good_[rank]);
        return {rank, other};
      case 3: bytes.resize(below(bytes.size())); return put(file, bytes);
      case 4: return put(file, bytes + std::string(1 + below(100), 'x'));
      default: return put(file, changed(std::move(bytes), file, kind == 5 ? 1 : 1 + below(64)));
    }
  }

  const std::string& name(std::size_t file) const { return names_[file]; }
  bool of_tensor_data() const { return tensor_data_; }  // only elements of tensors were changed

 private:
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(chance_() % bound); }

  std::vector<std::size_t> put(std::size_t file, const std::string& bytes) {
    if (bytes == good_[file]) return {};
    put_bytes(newest_ / names_[file], bytes);
    return {file};
  }

  // A manifest of a different step contradicts all files, so the error is allowed to name any file.
  std::vector<std::size_t> from_older_set(std::size_t file) {
    const std::vector<std::size_t> damaged = put(file, bytes_in(older_ / names_[file]));
    return file == 0 ? std::vector<std::size_t>{0, 1, 2, 3} : damaged;
  }

  // Flips one bit, or replaces bytes from a random position onward.
  std::string changed(std::string bytes, std::size_t file, std::size_t length) {
    const std::size_t at = below(bytes.size());
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    tensor_data_ = file > 0 && at >= 8 + header;
    if (length == 1)
      bytes[at] ^= static_cast<char>(1 << below(8));
    else
      for (std::size_t i = at; i < std::min(at + length, bytes.size()); ++i) bytes[i] = static_cast<char>(below(256));
    return bytes;
  }

  fs::path newest_, older_;
  std::mt19937_64& chance_;
  std::vector<std::string> names_, good_;
  bool tensor_data_ = false;
};

std::string error_of(const fs::path& path) {
  try {
    return fmt::format("step {} was loaded", step_loaded(path));
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("no random damage to a checkpoint is silent, and the older set is loaded") {
  const TemporaryFolder folder;
  for (const std::int64_t step : {10, 20}) save_on_three_ranks(folder, step);
  const fs::path newest = folder / "step-20";
  std::mt19937_64 chance(std::stoull(environment("SEED", "1")));
  Damage damage(newest, folder / "step-10", chance);
  const int count = std::stoi(environment("MUTATIONS", "300"));
  for (Tally tally; tally.tried < count;) {
    damage.repair();
    const std::vector<std::size_t> files = damage.apply();
    if (files.empty()) continue;  // the mutation did not change any byte
    const std::string said = error_of(newest), instead = error_of(folder);
    const auto is_said = [&](const std::string& words) { return said.find(words) != std::string::npos; };
    const bool named = std::ranges::any_of(files, [&](std::size_t file) { return is_said(damage.name(file)); });
    const bool located =
        !damage.of_tensor_data() || (is_said("tensor \"") && is_said(fmt::format("of rank {} is wrong", files[0] - 1)));
    INFO(fmt::format("damaged: {}; said: {}", damage.name(files[0]), said));
    CHECK(named);
    CHECK(located);
    CHECK(instead == "step 10 was loaded");
    tally.add(named && located && instead == "step 10 was loaded");
  }
  damage.repair();
  CHECK(step_loaded(folder) == 20);
}

}  // namespace chorale::test
