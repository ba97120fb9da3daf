// The one include that your own program needs to train a transformer, with the library of collectives/chorale.hpp. Include
// it as <chorale/parallel/train.hpp>, installed or not. examples/ has two such programs.
//
//   build_gpt(shape, …)                 the model as a list of layers, for a loop of your own
//   Training(options, mesh, …)          the same with the library's step: any layout, any numerics
//   Mesh(parse_layout("dp2.tp2", n), …) the groups of ranks
//   SyntheticLanguage, Sampler          training data, and its order
#pragma once
#include "collectives/chorale.hpp"
#include "layers/gpt.hpp"
#include "layers/optimizer.hpp"
#include "parallel/training.hpp"
#include "src/data/sampler.hpp"
#include "src/data/synthetic.hpp"
