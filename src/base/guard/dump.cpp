#include "src/base/guard/dump.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {

// A full disk must not prevent a guard from informing the ranks.
void write_dump(const GuardWords& words, const SeenRank& local) noexcept try {
  const std::string folder = fixed_text(local.page.folder);
  if (folder.empty()) return;
  replace_file(std::filesystem::path(folder) / "flight" / fmt::format("{}-{}.json", words.host, local.page.rank),
               to_text(words, 1) + "\n");
} catch (const std::exception&) {}

// The guard of rank 0 saw the ranks of all hosts; every other guard saw only the ranks of its own host.
GuardWords read_dumps(const std::filesystem::path& run) {
  GuardWords found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(run / "flight", ignored)) {
    if (entry.path().extension() != ".json") continue;
    GuardWords words;
    try {
      words = guard_words_in(contents_of(entry.path()).value_or(""));
    } catch (const Error& error) {
      usage_error("a flight recorder cannot be read",
                  fmt::format("{}: {}", entry.path().string(), on_one_line(error.what())),
                  "remove this file: those of other hosts may be good");
    }
    if (words.ranks.size() >= found.ranks.size()) std::swap(words, found);
    for (SeenRank& rank : words.ranks)
      if (std::ranges::none_of(found.ranks, [&](const SeenRank& one) { return one.page.rank == rank.page.rank; }))
        found.ranks.push_back(std::move(rank));
  }
  if (found.ranks.empty())
    usage_error("this run has no flight recorders", fmt::format("{} holds none", (run / "flight").string()),
                "they are written when a rank dies or the run hangs; name the folder of such a run");
  std::ranges::sort(found.ranks, {}, [](const SeenRank& rank) { return rank.page.rank; });
  return found;
}

}  // namespace chorale
