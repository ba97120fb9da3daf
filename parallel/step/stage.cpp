#include "parallel/step/stage.hpp"

#include "parallel/pipeline/split.hpp"

namespace chorale {
namespace {

// Sets the fields that state which ranks hold a parameter of this stage. A gradient is a sum over all tokens. So it is
// summed over the axes that divide the batch or its tokens, except those along which the parameter is sharded. Gradients of
// parameters marked `of_heads` are also summed over the axes that divide the width. With sequence parallelism, gradients of
// parameters marked `of_stream` are also summed over the axes that divide the width. An axis of size 1 shards nothing, so
// without expert parallelism the experts' parameters belong to the dense grid.
void state(Parameter& p, const Layout& layout, std::int64_t stage, bool ends) {
  const AxisTable& axes = *layout.axes;
  const AxisSet cut = layout.divided(axes.set_of(p.cut_by));
  p.cut_by = axes.names_of(cut);
  AxisSet sum = axes.holding_copies(axes.grid_of(cut)) & ~cut;
  if (p.of_heads || (p.of_stream && layout.sequence)) sum |= axes.dividing(Divides::width);
  p.summed_over = axes.names_of(sum);
  p.stages = p.tied ? end_stages(layout) : std::vector{stage};
  if (p.tied) p.multiplies = ends;  // only the stage with the head multiplies by the tied table
}

}  // namespace

Sharding width_sharding(const Mesh& mesh) {
  const AxisTable& axes = *mesh.layout().axes;
  return {mesh.tensor().rank(), mesh.tensor().size(), axes.names_of(axes.dividing(Divides::width))};
}

Sharding expert_sharding(const Mesh& mesh) {
  const AxisTable& axes = *mesh.layout().axes;
  const AxisSet experts = axes.dividing(Divides::experts, expert_grid);
  const Axis& group = mesh.along(experts);
  return {group.rank(), group.size(), axes.names_of(experts)};
}

std::vector<std::int64_t> equal_numbers(std::int64_t blocks, std::int64_t parts) {
  const std::int64_t most = (blocks + parts - 1) / parts, missing = most * parts - blocks;
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(parts), most);
  for (std::int64_t i = 0; i < missing; ++i) --numbers[static_cast<std::size_t>(i % 2 == 0 ? parts - 1 - i / 2 : i / 2)];
  return numbers;
}

std::vector<std::int64_t> blocks_of_parts(const ModelShape& shape, std::int64_t parts) {
  if (shape.equal_parts) return equal_numbers(shape.layers, parts);
  const double h = static_cast<double>(shape.width), head = h * static_cast<double>(shape.vocabulary);
  const double attention = h * static_cast<double>(shape.qkv_columns() + shape.heads * shape.head_width()) +
                           static_cast<double>(shape.heads * shape.head_width() * shape.sequence);
  std::vector<double> costs;
  for (std::int64_t block = 0; block < shape.layers; ++block) {
    const std::int64_t columns = (shape.gates() + 1) * shape.active_ffn(block);
    costs.push_back(attention + h * static_cast<double>(columns + (shape.has_experts(block) ? shape.experts.count : 0)));
  }
  costs.back() += head;
  return split_layers(costs, parts);
}

Stage::Stage(const ModelShape& shape, Recompute recompute, const Mesh& mesh, const BuildModel& build) {
  const Layout& layout = mesh.layout();
  Model model =
      build ? build(shape, recompute, mesh) : build_gpt(shape, recompute, width_sharding(mesh), expert_sharding(mesh));
  auto& layers = model.layers.layers();
  const PipelineShape pipeline = pipeline_of(layout);
  const std::vector<std::int64_t> blocks = blocks_of_parts(shape, pipeline.parts());
  const PartPlace first = pipeline.place(0), last = pipeline.place(pipeline.parts() - 1);
  const std::int64_t here = mesh.pipeline().rank();
  begins_ = first.stage == here;
  ends_ = last.stage == here;
  last_chunk_ = last.chunk;
  const ParameterPointer table = parameters_of(*layers[0]).at(0);

  std::size_t next = 1;  // index of the next layer of the model
  for (std::size_t part = 0; part < blocks.size(); ++part) {
    const PartPlace place = pipeline.place(static_cast<std::int64_t>(part));
    const bool mine = place.stage == here;
    require(!mine || place.chunk == static_cast<std::int64_t>(chunks_.size()), "a stage's chunks are not in model order");
    Sequence chunk("model");
    const auto add = [&](LayerPointer layer) {
      units_.push_back(parameters_of(*layer));
      uses_.push_back(units_.back());
      chunk.add(std::move(layer));
    };
    if (mine && part == 0) {
      add(std::move(layers[0]));
      if (auto& unit = units_.back(); shape.tied && unit.size() > 1) {
        const std::vector<ParameterPointer> others(unit.begin() + 1, unit.end());
        unit.resize(1);
        units_.push_back(others);
      }
    }
    for (std::int64_t i = 0; i < blocks[part]; ++i, ++next)
      if (mine) add(std::move(layers[next]));
    if (mine && part + 1 == blocks.size()) {
      if (!begins_) model.head->own_table();
      auto end = std::make_unique<Sequence>("end");
      end->add(std::move(layers[next])).add(std::move(layers[next + 1]));
      add(std::move(end));
      if (shape.tied && begins_) uses_.back().push_back(table);
    }
    if (mine) chunks_.push_back(std::move(chunk));
  }
  for (const ParameterPointer& p : parameters()) state(*p, layout, here, ends_);
}

std::vector<ParameterPointer> Stage::parameters() const {
  std::vector<ParameterPointer> all;
  for (const auto& unit : units_) all.insert(all.end(), unit.begin(), unit.end());
  return all;
}

void Stage::wrap_units(Buckets& buckets) {
  std::span<const std::vector<ParameterPointer>> uses(uses_);
  for (Sequence& chunk : chunks_) {
    chorale::wrap_units(chunk.layers(), uses, buckets);
    uses = uses.subspan(chunk.layers().size());
  }
}

void Stage::each_site(const std::function<void(SumSite&)>& visit) {
  for (Sequence& chunk : chunks_) chunk.each_site(visit);
}

}  // namespace chorale
