// The tokenizer that goes with a model. A run keeps it in its folder, so that texts can be generated and exported later
// without being told:
//
//   runs/<id>/tokenizer/    tokenizer.json, tokenizer_config.json …       model/    the same files beside the weights
//
// Files are copied as they came: what another library has made, and may know more of than we do, goes back to it unchanged.
#pragma once
#include <filesystem>
#include <string>

namespace chorale {

// The folder with the tokenizer of a run, of its checkpoints, or of a folder of Hugging Face's; "" where there is none.
std::string tokenizer_beside(const std::filesystem::path& model);

// A usage error for one that is unknown, or that makes tokens beyond the model's.
void require_tokenizer(const std::string& name, std::int64_t vocabulary);

// Writes the files of "bytes", of a file or of a folder into `folder`, for a model of so many positions.
void keep_tokenizer(const std::string& name, const std::filesystem::path& folder, std::int64_t positions);

}  // namespace chorale
