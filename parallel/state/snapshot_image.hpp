// One rank's snapshots in memory (snapshot.hpp): two generations, which are written in turn. A rank has such an image of its
// own parts, and one for each rank whose buddy it is (buddies.hpp). Both have the same bytes.
//
//   info    head (step, checksum) │ begin: the parts │ end: their checksums, metadata        kept.hpp, manifest.hpp
//   image   header of safetensors │ parts that the buddy holds itself │ parts that are sent to the buddy
#pragma once
#include <array>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parallel/state/checkpoint.hpp"
#include "src/base/keeper/kept.hpp"

namespace chorale {

// The contents of an image. The parts of a rank never change, so this plan is made once.
struct ImagePlan {
  struct Piece {
    std::string part;  // name_of_part
    std::int64_t bytes = 0;
    std::size_t number = 0;  // among the tensors of `begin`
    bool sent = false;       // to the buddy; these pieces come last
  };
  int rank = 0;  // whose parts they are
  std::string begin, header;
  std::vector<Piece> pieces = {};  // in the order of the image

  std::int64_t bytes(bool only_sent = false) const;  // of all pieces, or of those that are sent
};
// `here`: the parts that the buddy holds itself.
ImagePlan image_plan(int rank, const std::vector<StateTensor>& saved, const std::set<std::string>& here);
std::string text_of(const ImagePlan& plan);
ImagePlan image_plan_in(const std::string& text);

class SnapshotImage {
 public:
  explicit SnapshotImage(ImagePlan plan);  // allocates; throws an error if there is too little memory

  const ImagePlan& plan() const { return plan_; }
  std::array<KeptFiles, kept_generations> files() const;  // for the keeper

  // Writes the next generation: begin(), then put() for each piece, then finish(). A buddy fills the bytes
  // of sent() instead, and calls add_checksums_of_sent().
  void begin();
  void put(std::size_t piece, const Slice& data);
  std::span<std::byte> sent();  // the place of the pieces that are sent to the buddy
  void add_checksums_of_sent();
  void finish(const Metadata& metadata);

 private:
  struct Mapped {
    explicit Mapped(std::span<std::byte> place) : bytes(place) {}
    Mapped(Mapped&& other) noexcept : bytes(std::exchange(other.bytes, {})) {}
    ~Mapped();
    std::span<std::byte> bytes;
  };
  struct Generation {
    KeptFiles files;
    Mapped info, image;
  };
  static Generation new_generation(const std::string& name, std::size_t info_bytes, std::size_t image_bytes);
  Generation& here() { return generations_[next_]; }

  ImagePlan plan_;
  std::vector<std::size_t> first_;  // of each piece in the image
  std::uint32_t begin_checksum_ = 0;
  std::vector<std::uint32_t> checksums_;
  std::vector<Generation> generations_;
  std::size_t next_ = 0;
};

}  // namespace chorale
