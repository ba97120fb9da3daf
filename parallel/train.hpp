// The one header that your own program includes to train a transformer: `#include <chorale/parallel/train.hpp>`. This
// header includes <chorale/chorale.hpp> and needs the same libraries. examples/ has two such programs.
//
//   build_gpt(shape, …)                 builds the model as a list of layers, for a training loop of your own
//   Training(options, mesh, …)          model, optimizer and the library's training step, on any layout, with any numerics
//   Mesh(parse_layout("dp2.tp2", n), …) the groups of ranks
//   SyntheticLanguage, Sampler          training data, and the order in which they are read
#pragma once
#include <chorale/chorale.hpp>

#include "layers/gpt.hpp"
#include "layers/optimizer.hpp"
#include "parallel/step/training.hpp"
#include "src/data/sampler.hpp"
#include "src/data/synthetic.hpp"
