#include "src/data/documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "src/base/error.hpp"
#include "src/base/random.hpp"
#include "src/data/megatron.hpp"
#include "src/data/token_file.hpp"

namespace chorale {

Documents Documents::ending_with(std::int32_t token) {
  require(token >= 0, "a token is 0 or more, got {}", token);
  Documents documents;
  documents.end_of_text_ = token;
  return documents;
}

Documents Documents::between(std::vector<std::int64_t> bounds) {
  require(bounds.size() > 1 && std::ranges::is_sorted(bounds), "{} bounds of documents, not in ascending order",
          bounds.size());
  Documents documents;
  documents.bounds_ = std::move(bounds);
  return documents;
}

Documents Documents::random(std::int64_t mean) {
  require(mean > 0, "random documents have a mean length of 1 or more, got {}", mean);
  Documents documents;
  documents.mean_ = mean;
  return documents;
}

Documents Documents::named(const std::string& name) {
  if (name == "none") return {};
  if (name.ends_with(".idx")) return between(megatron_documents(name));
  const std::string prefix = "random:";
  const bool drawn = name.starts_with(prefix);
  const std::string_view digits = std::string_view(name).substr(drawn ? prefix.size() : 0);
  std::int32_t number = -1;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failure != std::errc() || end != digits.data() + digits.size() || number < (drawn ? 1 : 0))
    usage_error("the documents of the data are unknown",
                fmt::format("--document-mask is \"{}\", which is no token, no .idx file and not random:MEAN", name),
                "give the number of the end-of-text token, such as 50256 for GPT-2, or the .idx file of the data");
  return drawn ? random(number) : ending_with(number);
}

bool Documents::starts(std::int64_t number, std::int32_t before) const {
  if (end_of_text_ >= 0) return before == end_of_text_;
  if (mean_ > 0) return Random{.seed = 1}.uniform(static_cast<std::uint64_t>(number)) * static_cast<double>(mean_) < 1;
  return std::ranges::binary_search(bounds_, number);
}

void Documents::mark(std::int64_t first, std::span<const std::int32_t> inputs, std::span<std::int32_t> targets,
                     std::span<std::int32_t> positions) const {
  std::int32_t position = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    positions[i] = position++;
    if (!any() || !starts(first + static_cast<std::int64_t>(i) + 1, inputs[i])) continue;
    targets[i] = -1;
    position = 0;
  }
}

void Documents::require_of(const StoredTokens& data) const {
  if (!bounds_.empty() && bounds_.back() != data.count())
    usage_error("the documents are those of other data",
                fmt::format("the index describes {} tokens, {} has {}", bounds_.back(), data.name(), data.count()),
                "name the .idx file of --data");
}

void Documents::require_token_below(std::int64_t vocabulary) const {
  if (end_of_text_ >= vocabulary)
    usage_error("no text of this vocabulary ends",
                fmt::format("--document-mask is {}, vocab-size is {}", end_of_text_, vocabulary),
                "name the end-of-text token of the data's tokenizer");
}

void Documents::require_shorter(const StoredTokens& data, std::int64_t longest) const {
  std::int64_t start = 0;
  const auto ends = [&](std::int64_t end) {
    if (end - start > longest)
      usage_error("a document is longer than a sequence",
                  fmt::format("{}: the document at token {} has {} tokens; seq-length is {}", data.name(), start,
                              end - start, longest),
                  fmt::format("use --seq-length {} or more, or --split-documents to cut it", end - start));
    start = end;
  };
  for (const std::int64_t bound : bounds_) ends(bound);
  if (end_of_text_ < 0) return;
  std::vector<std::int32_t> block(1 << 16);
  for (std::int64_t first = 0; first < data.count(); first += std::ssize(block)) {
    block.resize(static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(block), data.count() - first)));
    data.tokens(first, block);
    for (std::size_t i = 0; i < block.size(); ++i)
      if (block[i] == end_of_text_) ends(first + static_cast<std::int64_t>(i) + 1);
  }
  ends(data.count());
}

}  // namespace chorale
