// The node that really trains: the model, its optimiser and its data, with LibTorch behind it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/batch.h"
#include "trainer/model/config.h"
#include "trainer/node.h"
#include "trainer/optim/config.h"

namespace spes::trainer {

class PublishedTensors;

struct ModelNodeConfig {
  ModelConfig model;
  OptimizerConfig optimizer;
  std::int64_t sequences = 8;        // B per step
  std::int64_t micro_sequences = 0;  // of one microbatch; divides `sequences`; 0: all at once
  std::int64_t context = 128;        // T
  // "cpu" or "cuda:N": where the model is computed. On each of several a replica trains every so
  // many-th microbatch of a step; the result is that of one device which trains them all.
  std::vector<std::string> devices = {"cpu"};
  ComputeType compute = ComputeType::kModel;
  // LibTorch's operators on the host too, which are those of other devices: slower, equal to
  // rounding. For tests.
  bool library_operators = false;
  // Where given, published values go to a device once for all nodes that share it.
  std::shared_ptr<PublishedTensors> published = nullptr;
  // Of so many times `sequences` samples a step trains on those whose tokens the router would send
  // most to the experts that this node trains; see trainer/model/affinity.h.
  int candidates = 1;
  // While young, a node's routing leans towards the experts that it trains: the bias on their
  // logits, in the choice of experts alone, falls linearly from `routing_bias` at step 0 to 0 at
  // step `routing_bias_length`.
  double routing_bias = 0;
  std::int64_t routing_bias_length = 0;
  // Computes the gradients of a step and leaves the parameters alone: Read gives the gradients.
  // Such a node refers to all published values and has no moments.
  bool gradients_only = false;
  // Where given, counts the finished steps of all nodes that share it, for who shows progress.
  std::shared_ptr<std::atomic<std::int64_t>> steps_done = nullptr;
};

// `world` gives every block's first value; `trainable` ascending ids; gradient accumulation
// averages over microbatches. Throws std::invalid_argument on settings that do not fit and on
// devices that this machine does not have.
std::unique_ptr<Node> MakeModelNode(const ModelNodeConfig& config, const World& world,
                                    std::vector<BlockId> trainable,
                                    std::unique_ptr<BatchSource> data);

std::shared_ptr<PublishedTensors> MakePublishedTensors();

// Uses one thread for the operators of each calling thread, and picks deterministic algorithms.
// Nodes and evaluations call it themselves; whatever else uses LibTorch calls it first.
void InitLibTorch();

}  // namespace spes::trainer
