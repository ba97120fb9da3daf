#include "src/data/pretokenizer.hpp"

#include "src/data/unicode.hpp"

namespace chorale {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool ends_line(char c) { return c == '\r' || c == '\n'; }

std::size_t contraction(std::string_view text, bool any_case) {
  if (text[0] != '\'') return 0;
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    std::size_t same = 0;
    while (same < ending.size() && same < text.size() && ending[same] == (any_case ? lower(text[same]) : text[same])) ++same;
    if (same == ending.size()) return same;
  }
  return 0;
}

// Returns the end of the longest sequence of characters of kind `kind` that starts at `from`.
std::size_t run(std::string_view text, std::size_t from, CharacterKind kind) {
  while (from < text.size()) {
    const Character c = character_at(text, from);
    if (c.kind != kind) break;
    from += c.bytes;
  }
  return from;
}

// Returns the length of the match of \s+(?!\S)|\s+ in a text that starts with white space. The match is the text's first run
// of white space. If other text follows the run, the last character of the run is not matched, because it belongs to the
// next pre-token. A run of a single character is always matched.
std::size_t spaces(std::string_view text) {
  std::size_t end = 0, before_last = 0;
  while (end < text.size()) {
    const Character c = character_at(text, end);
    if (c.kind != CharacterKind::space) return before_last > 0 ? before_last : end;
    before_last = end;
    end += c.bytes;
  }
  return end;
}

std::size_t gpt2_piece(std::string_view text) {
  if (const std::size_t length = contraction(text, false)) return length;
  const std::size_t start = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const CharacterKind kind = character_at(text, start).kind;
  return kind == CharacterKind::space ? spaces(text) : run(text, start, kind);
}

std::size_t llama3_piece(std::string_view text) {
  if (const std::size_t length = contraction(text, true)) return length;
  const Character first = character_at(text, 0);
  const bool opens_word = first.kind != CharacterKind::number && first.kind != CharacterKind::letter && !ends_line(text[0]);
  const std::size_t start = opens_word ? first.bytes : 0;
  if (const std::size_t word = run(text, start, CharacterKind::letter); word > start) return word;
  if (first.kind == CharacterKind::number) {
    std::size_t end = 0;
    for (int digits = 0; digits < 3 && end < text.size(); ++digits) {
      const Character c = character_at(text, end);
      if (c.kind != CharacterKind::number) break;
      end += c.bytes;
    }
    return end;
  }
  const std::size_t marks_from = text[0] == ' ' ? 1 : 0;
  if (std::size_t end = run(text, marks_from, CharacterKind::mark); end > marks_from) {
    while (end < text.size() && ends_line(text[end])) ++end;
    return end;
  }
  std::size_t line_end = run(text, 0, CharacterKind::space);  // \s*[\r\n]+ matches up to the last line end in the run of
                                                              // spaces
  while (line_end > 0 && !ends_line(text[line_end - 1])) --line_end;
  return line_end > 0 ? line_end : spaces(text);
}

}  // namespace

std::size_t Pieces::next_length() {
  if (cut_ == Cut::llama3) return llama3_piece(rest_);
  if (cut_ == Cut::gpt2) return gpt2_piece(rest_);
  const Character first = character_at(rest_, 0);
  if (first.kind == CharacterKind::number) return first.bytes;
  for (; before_number_ < rest_.size(); before_number_ += character_at(rest_, before_number_).bytes)
    if (character_at(rest_, before_number_).kind == CharacterKind::number) break;
  return gpt2_piece(rest_.substr(0, before_number_));
}

bool Pieces::next(std::string_view& piece) {
  if (rest_.empty()) return false;
  piece = rest_.substr(0, next_length());
  rest_.remove_prefix(piece.size());
  before_number_ -= before_number_ < piece.size() ? before_number_ : piece.size();
  return true;
}

}  // namespace chorale
