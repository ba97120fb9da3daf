// GPT-2's byte alphabet, in which files of tokenizers write tokens: bytes that print stand for themselves, the others for the code points from
// 256 on (a space is Ġ), so that every token is a readable word.
#pragma once
#include <optional>
#include <string>

namespace chorale {

std::string readable(const std::string& bytes);
std::optional<std::string> bytes_of_word(const std::string& word);  // none where it has a letter that is not of the alphabet

}  // namespace chorale
