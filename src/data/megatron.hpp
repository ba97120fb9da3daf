// Reads Megatron-LM's indexed data sets. FILE.bin contains only tokens. FILE.idx says how the tokens are split into
// sequences and documents. Training reads the tokens of all documents as one stream; --document-mask separates the
// documents. FILE.idx contains, in this order:
//
//   "MMIDIDX\0\0"  version: u64 = 1  type of tokens: u8  sequences: u64  document bounds: u64
//   length of each sequence: i32 × sequences
//   byte offset of each sequence in FILE.bin: i64 × sequences
//   first sequence of each document, and the end: i64 × document bounds
#pragma once
#include "src/data/token_file.hpp"

namespace chorale {

StoredTokens open_megatron(const std::filesystem::path& index);
// Returns the position of each document's first token, followed by the total number of tokens.
std::vector<std::int64_t> megatron_documents(const std::filesystem::path& index);

}  // namespace chorale
