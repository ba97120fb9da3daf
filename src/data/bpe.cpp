#include "src/data/bpe.hpp"

#include <algorithm>
#include <queue>

#include "src/base/error.hpp"

namespace chorale {
namespace {

std::uint64_t key_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

TokenizerParts parts_of(std::vector<Tokenizer::Merge> merges) {
  TokenizerParts parts;
  for (int byte = 0; byte < 256; ++byte) {
    parts.bytes.emplace_back(1, static_cast<char>(byte));
    parts.of_byte[static_cast<std::size_t>(byte)] = byte;
  }
  for (const auto& [left, right] : merges) {
    const auto known = static_cast<std::int64_t>(parts.bytes.size());
    require(left >= 0 && right >= 0 && left < known && right < known,
            "token {} cannot be merged from {} and {}, which come later", known, left, right);
    parts.made.push_back(static_cast<std::int32_t>(known));
    parts.bytes.push_back(parts.bytes[static_cast<std::size_t>(left)] + parts.bytes[static_cast<std::size_t>(right)]);
  }
  parts.merges = std::move(merges);
  return parts;
}

}  // namespace

Tokenizer::Tokenizer(std::vector<Merge> merges) : Tokenizer(parts_of(std::move(merges))) {}

Tokenizer::Tokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
  require(parts_.merges.size() == parts_.made.size(), "{} merges cannot make {} tokens", parts_.merges.size(),
          parts_.made.size());
  for (std::size_t i = 0; i < parts_.merges.size(); ++i)
    merge_of_pair_[key_of(parts_.merges[i][0], parts_.merges[i][1])] = static_cast<std::int32_t>(i);
  if (parts_.whole_first)
    for (std::size_t token = 0; token < parts_.bytes.size(); ++token)
      whole_.emplace(parts_.bytes[token], static_cast<std::int32_t>(token));
  for (const AddedToken& token : parts_.added) added_[static_cast<unsigned char>(token.text.at(0))].push_back(token);
  for (auto& tokens : added_)
    std::stable_sort(tokens.begin(), tokens.end(), [](auto& a, auto& b) { return a.text.size() > b.text.size(); });
}

// Repeatedly merges the leftmost occurrence of the earliest learned pair, until no pair can be merged. A heap holds the
// mergeable pairs. The heap can also hold stale pairs, whose tokens are already merged. Cost: O(n log n) for a pre-token of
// n bytes.
std::vector<std::int32_t> Tokenizer::encode_piece(std::string_view piece) const {
  if (const auto whole = whole_.find(std::string(piece)); whole != whole_.end()) return {whole->second};
  const auto merge_of = [&](std::int32_t left, std::int32_t right) {
    const auto found = merge_of_pair_.find(key_of(left, right));
    return found == merge_of_pair_.end() ? -1 : found->second;
  };
  std::vector<std::int32_t> tokens(piece.size());  // one entry per byte, which is −1 if the byte belongs to a token on its
                                                   // left
  std::transform(piece.begin(), piece.end(), tokens.begin(),
                 [&](char c) { return parts_.of_byte[static_cast<unsigned char>(c)]; });
  std::vector<std::size_t> before(tokens.size()), after(tokens.size());
  using Candidate = std::pair<std::int32_t, std::size_t>;  // a merge and the index of its left token
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto offer = [&](std::size_t left) {
    if (after[left] == tokens.size()) return;
    if (const std::int32_t merge = merge_of(tokens[left], tokens[after[left]]); merge >= 0) candidates.push({merge, left});
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    before[i] = i - 1;
    after[i] = i + 1;
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) offer(i);
  while (!candidates.empty()) {
    const auto [merge, left] = candidates.top();
    candidates.pop();
    const std::size_t right = after[left];
    if (tokens[left] < 0 || right == tokens.size() || merge_of(tokens[left], tokens[right]) != merge) continue;
    tokens[left] = parts_.made[static_cast<std::size_t>(merge)];
    tokens[right] = -1;
    after[left] = after[right];
    if (after[left] < tokens.size()) before[after[left]] = left;
    if (left > 0) offer(before[left]);
    offer(left);
  }
  std::erase(tokens, -1);
  return tokens;
}

// Returns the longest added token that starts at position `place`.
const AddedToken* Tokenizer::added_at(std::string_view text, std::size_t place) const {
  for (const AddedToken& token : added_[static_cast<unsigned char>(text[place])])
    if (text.substr(place).starts_with(token.text)) return &token;
  return nullptr;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, const std::function<void(std::size_t)>& progress) const {
  constexpr std::size_t longest_kept = 64;  // in bytes; if a pre-token is not longer than this, its tokens are cached,
                                            // because pre-tokens repeat
  std::unordered_map<std::string_view, std::vector<std::int32_t>> known;
  std::vector<std::int32_t> tokens;
  std::size_t count = 0;
  const auto append = [&](const std::vector<std::int32_t>& more) { tokens.insert(tokens.end(), more.begin(), more.end()); };
  const auto take_piece = [&](std::string_view piece) {
    if (piece.size() > longest_kept) return append(encode_piece(piece));
    const auto [found, is_new] = known.try_emplace(piece);
    if (is_new) found->second = encode_piece(piece);
    append(found->second);
  };
  for (std::size_t begins = 0; begins < text.size();) {
    const AddedToken* added = nullptr;
    std::size_t ends = begins;
    while (ends < text.size() && !(added = added_at(text, ends))) ++ends;
    std::string_view piece;
    for (Pieces pieces(text.substr(begins, ends - begins), parts_.cut); pieces.next(piece);) {
      take_piece(piece);
      if (progress && ++count % 4096 == 0) progress(static_cast<std::size_t>(piece.data() - text.data()));
    }
    if (added) tokens.push_back(added->token);
    begins = ends + (added ? added->text.size() : 0);
  }
  return tokens;
}

const std::string& Tokenizer::bytes_of(std::int32_t token) const {
  require(token >= 0 && token < vocabulary(), "token {} is outside the vocabulary of {}", token, vocabulary());
  return parts_.bytes[static_cast<std::size_t>(token)];
}

std::string Tokenizer::decode(const std::vector<std::int32_t>& tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) text += bytes_of(token);
  return text;
}

}  // namespace chorale
