// The tokenizer of a model. A run keeps a copy in its folder, where `generate` and `export` find it. An exported model has
// the same files beside its weights.
//
//   runs/<id>/tokenizer/    tokenizer.json, tokenizer_config.json …       model/    model.safetensors, tokenizer.json …
//
// Files are copied unchanged, because they can contain settings for other libraries, which Chorale does not understand.
#pragma once
#include <filesystem>
#include <string>

namespace chorale {

// `model` is a run, its checkpoints or a Hugging Face model. Returns the folder with its tokenizer; "" if there is none.
std::string tokenizer_beside(const std::filesystem::path& model);

// Throws a usage error if the tokenizer is unknown or has more tokens than the model.
void require_tokenizer(const std::string& name, std::int64_t vocabulary);

// Writes a tokenizer into `folder`. `name` is "bytes", a file or a folder; `positions` is the longest sequence of the model.
void keep_tokenizer(const std::string& name, const std::filesystem::path& folder, std::int64_t positions);

}  // namespace chorale
