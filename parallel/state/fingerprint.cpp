#include "parallel/state/fingerprint.hpp"

#include <fmt/format.h>

#include "parallel/state/resume.hpp"
#include "src/base/hash.hpp"
#include "src/base/text.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
std::uint64_t hash_of(const StateTensor& t) {
  const Places places = places_of(t.shape, t.part.shard, t.part.first);
  std::uint64_t sum = 0;
  in_pieces(t.data, Use::read, [&](const Slice& here, std::int64_t first) {
    visit(here.dtype, [&]<class T>(Type<T>) {
      const T* const values = static_cast<const T*>(here.data);
      for (std::int64_t i = 0; i < here.count; ++i) {
        std::uint64_t bits = 0;
        __builtin_memcpy(&bits, values + i, sizeof(T));
        sum += scrambled(static_cast<std::uint64_t>(places(first + i)) * 0x9E3779B97F4A7C15u ^ scrambled(bits + 1));
      }
    });
  });
  return sum;
}

namespace {

// Adds up the hashes of all ranks for each name. Each rank sends its hashes to all ranks as one string. If the hash of a
// copy equals the owner's hash, the copy's entry is removed.
std::map<std::string, std::uint64_t> brought_together(const std::vector<StateTensor>& tensors, const Training& training) {
  std::string mine;
  for (const StateTensor& t : tensors) {
    mine += fmt::format("{}{}{} {}\n", t.name, t.copy.empty() ? "" : "@", t.copy, hash_of(t));
  }
  std::map<std::string, std::uint64_t> all;
  for (const std::string& text : training.mesh().world().exchange(mine))
    for (const std::string& line : split(text, '\n')) {
      const auto space = line.find(' ');
      if (space != std::string::npos) all[line.substr(0, space)] += std::stoull(line.substr(space + 1));
    }
  std::erase_if(all, [&](const auto& entry) {
    const auto& [name, hash] = entry;
    const auto at = name.find('@');
    return at != std::string::npos && all.at(name.substr(0, at)) == hash;
  });
  return all;
}

}  // namespace

std::map<std::string, std::uint64_t> fingerprint(Training& training) {
  return brought_together(state_of(training), training);
}

std::map<std::string, std::uint64_t> gradient_fingerprint(Training& training) {
  auto all = brought_together(gradients_of(training), training);
  std::vector<std::int64_t> choices = training.choices().numbers;  // the same on all ranks
  const std::int64_t count = std::ssize(choices);
  if (count > 0) all["choices"] = hash_of({"choices", {count}, {.count = count}, {choices.data(), count, DType::i64}});
  return all;
}

}  // namespace chorale
