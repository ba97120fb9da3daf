// The tokenizer of a model. A run keeps it in its folder, so that `generate` and `export` find it:
//
//   runs/<id>/tokenizer/    tokenizer.json, tokenizer_config.json …       model/    the same files beside the weights
//
// Files are copied unchanged, because another library may have written more into them than we understand.
#pragma once
#include <filesystem>
#include <string>

namespace chorale {

// The folder with the tokenizer of a run, of its checkpoints or of a Hugging Face model; "" if there is none.
std::string tokenizer_beside(const std::filesystem::path& model);

// Throws a usage error if the tokenizer is unknown or has more tokens than the model.
void require_tokenizer(const std::string& name, std::int64_t vocabulary);

// Writes a tokenizer, given as "bytes", a file or a folder, into `folder`, for a model with this many positions.
void keep_tokenizer(const std::string& name, const std::filesystem::path& folder, std::int64_t positions);

}  // namespace chorale
