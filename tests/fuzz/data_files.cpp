// Fuzz targets for token files and tokenizers.
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "src/data/bpe.hpp"
#include "src/data/megatron.hpp"
#include "src/data/token_file.hpp"
#include "tests/files.hpp"
#include "tests/fuzz/target.hpp"

namespace chorale::test {

namespace {

constexpr std::int64_t tokens_of_sample = 60;

void read_all(const StoredTokens& stored) {
  std::vector<std::int32_t> sample(8);
  for (std::int64_t i = 0; i < stored.samples(7); ++i) stored.read(i, sample);
  stored.require_below(stored.vocabulary());
}

// Returns a Megatron index of sequences with the given lengths. Each sequence is one document.
std::string index_of(const std::vector<std::int32_t>& lengths) {
  std::string bytes("MMIDIDX\0\0", 9);
  const auto put = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  put(std::uint64_t{1});
  put(std::uint8_t{8});
  put(std::uint64_t{lengths.size()});
  put(std::uint64_t{lengths.size() + 1});
  for (const std::int32_t length : lengths) put(length);
  std::int64_t place = 0;
  for (const std::int32_t length : lengths) {
    put(place);
    place += 2 * length;
  }
  for (std::int64_t document = 0; document <= std::ssize(lengths); ++document) put(document);
  return bytes;
}

void use(const Tokenizer& tokenizer) {
  const std::string text = "The quick brown fox, it's 12345 times\n\n  <|endoftext|>\xff\xc3\xa9 done. héllo";
  if (tokenizer.decode(tokenizer.encode(text)).empty()) throw std::logic_error("a text has become nothing");
}

}  // namespace

std::vector<std::string> token_file_samples() {
  std::vector<std::string> samples;
  for (const std::int32_t largest : {500, 70'000}) {  // token ids are stored in two and in four bytes
    std::vector<std::int32_t> tokens(tokens_of_sample, 7);
    tokens[3] = largest;
    write_tokens("sample.bin", tokens);
    samples.push_back(bytes_in("sample.bin"));
  }
  return samples;
}

void fuzz_token_file(std::string_view input) {
  put_bytes("tokens.bin", input);
  read_all(open_tokens("tokens.bin"));
}

std::vector<std::string> megatron_samples() { return {index_of({10, 20, 30}), index_of({60}), index_of({0, 59, 1})}; }

void fuzz_megatron(std::string_view input) {
  put_bytes("corpus.bin", std::string(2 * tokens_of_sample, '\1'));
  put_bytes("corpus.idx", input);
  megatron_documents("corpus.idx");
  read_all(open_tokens("corpus.idx"));
}

std::vector<std::string> tokenizer_samples() { return {train_bpe("the cat and the other cat sat there", 262).json()}; }

void fuzz_tokenizer(std::string_view input) {
  put_bytes("tokenizer.json", input);
  use(Tokenizer::named("tokenizer.json"));
}

// The input consists of vocab.json, an empty line, and merges.txt.
void fuzz_vocabulary(std::string_view input) {
  const std::size_t end = std::min(input.find("\n\n"), input.size());
  use(Tokenizer::from_vocabulary_and_merges(std::string(input.substr(0, end)), std::string(input.substr(end)), "{}",
                                            "model"));
}

std::vector<std::string> vocabulary_samples() {
  const auto model = nlohmann::json::parse(tokenizer_samples()[0])["model"];
  std::string text = model["vocab"].dump() + "\n\n#version: 0.2\n";
  for (const auto& merge : model["merges"]) text += merge.get<std::string>() + "\n";
  return {text};
}

}  // namespace chorale::test
