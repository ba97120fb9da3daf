#include "src/data/bpe.hpp"

#include <algorithm>
#include <numeric>

#include "src/base/error.hpp"

namespace chorale {
namespace {

enum class Kind { letter, digit, space, mark };

Kind kind_of(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 128 || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z')) return Kind::letter;
  if (byte >= '0' && byte <= '9') return Kind::digit;
  if (byte == ' ' || (byte >= '\t' && byte <= '\r')) return Kind::space;
  return Kind::mark;
}

std::uint64_t key_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

}  // namespace

std::string_view next_piece(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending)) return text.substr(0, ending.size());
  const auto run = [&](std::size_t from) {  // where what is alike ends
    std::size_t end = from;
    while (end < text.size() && kind_of(text[end]) == kind_of(text[from])) ++end;
    return end;
  };
  if (kind_of(text[0]) != Kind::space) return text.substr(0, run(0));
  const std::size_t spaces = run(0);
  if (spaces == text.size()) return text;
  if (spaces > 1) return text.substr(0, spaces - 1);  // the last is looked at again
  return text.substr(0, text[0] == ' ' ? run(1) : 1);
}

Tokenizer::Tokenizer(std::vector<Merge> merges) : merges_(std::move(merges)) {
  for (int byte = 0; byte < 256; ++byte) bytes_.emplace_back(1, static_cast<char>(byte));
  for (const auto& [left, right] : merges_) {
    const std::int64_t known = vocabulary();
    require(left >= 0 && right >= 0 && left < known && right < known, "token {} is made of {} and {}, which come later",
            known, left, right);
    token_of_pair_.emplace(key_of(left, right), static_cast<std::int32_t>(known));
    bytes_.push_back(bytes_[static_cast<std::size_t>(left)] + bytes_[static_cast<std::size_t>(right)]);
  }
}

// The pair learnt first is merged first, everywhere in the piece. A long piece (a line of dashes) takes its length squared.
std::vector<std::int32_t> Tokenizer::encode_piece(std::string_view piece) const {
  std::vector<std::int32_t> tokens(piece.size());
  std::transform(piece.begin(), piece.end(), tokens.begin(), [](char c) { return static_cast<unsigned char>(c); });
  while (tokens.size() > 1) {
    std::int32_t best = std::numeric_limits<std::int32_t>::max();
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
      if (const auto found = token_of_pair_.find(key_of(tokens[i], tokens[i + 1])); found != token_of_pair_.end())
        best = std::min(best, found->second);
    if (best == std::numeric_limits<std::int32_t>::max()) break;
    const auto [left, right] = merges_[static_cast<std::size_t>(best - 256)];
    std::size_t to = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool pair = i + 1 < tokens.size() && tokens[i] == left && tokens[i + 1] == right;
      tokens[to++] = pair ? best : tokens[i];
      i += pair;
    }
    tokens.resize(to);
  }
  return tokens;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, const std::function<void(std::size_t)>& progress) const {
  constexpr std::size_t longest_kept = 64;  // pieces come again and again
  std::unordered_map<std::string_view, std::vector<std::int32_t>> known;
  std::vector<std::int32_t> tokens;
  const std::size_t whole = text.size();
  for (std::size_t count = 0; !text.empty(); ++count) {
    const std::string_view piece = merges_.empty() ? text : next_piece(text);
    if (piece.size() > longest_kept) {
      const std::vector<std::int32_t> some = encode_piece(piece);
      tokens.insert(tokens.end(), some.begin(), some.end());
    } else {
      const auto [found, is_new] = known.try_emplace(piece);
      if (is_new) found->second = encode_piece(piece);
      tokens.insert(tokens.end(), found->second.begin(), found->second.end());
    }
    text.remove_prefix(piece.size());
    if (progress && count % 4096 == 0) progress(whole - text.size());
  }
  return tokens;
}

const std::string& Tokenizer::bytes_of(std::int32_t token) const {
  require(token >= 0 && token < vocabulary(), "token {} of a vocabulary of {}", token, vocabulary());
  return bytes_[static_cast<std::size_t>(token)];
}

std::string Tokenizer::decode(const std::vector<std::int32_t>& tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) text += bytes_of(token);
  return text;
}

}  // namespace chorale
