#include "scenarios/describe.h"

#include <fmt/format.h>

#include "scenarios/describe_parts.h"

namespace spes::scenarios {

bool Limits::Allow(double x) const {
  return (above_min ? x > min : x >= min) && (below_max ? x < max : x <= max);
}

std::string Limits::Text(const std::function<std::string(double)>& number) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::string text;
  if (min > -kInfinity)
    text = fmt::format(" {} {}", above_min ? "above" : "of at least", number(min));
  if (max < kInfinity) {
    text += fmt::format("{} {} {}", text.empty() ? "" : " and", below_max ? "below" : "at most",
                        number(max));
  }
  return text;
}

// Static and not in a nameless namespace, where the templates would not find them.
static void Describe(trainer::DomainConfig& domain, Visitor& v) {
  using trainer::TokenType;
  v.OnValue({"name", "Name of the domain in the log; of a corpus, its name by default."},
            &domain.name);
  v.OnValue(
      {"corpus",
       "An entry of the catalogue corpora.yaml. A list item that is a name alone means this. "
       "Exactly one of corpus, files, tokens and synthetic says where the domain comes from."},
      &domain.corpus);
  v.OnValue({"files", "Text files, plain or .gz, put one after the other.", {}, Unit::kInputFile},
            &domain.files);
  v.OnValue({"tokens",
             "Files of token ids, little-endian without a header; mapped, not loaded.",
             {},
             Unit::kInputFile},
            &domain.tokens);
  OneOf<TokenType>(v, {"token_type", "Type of the ids in `tokens`."}, domain.token_type,
                   {{"uint16", TokenType::kUint16}, {"uint32", TokenType::kUint32}});
  v.OnValue({"synthetic", "The built-in language, whose entropy is known; it needs no file."},
            &domain.synthetic);
  v.OnValue({"synthetic_tokens", "Length of the synthetic text.", kNotNegative},
            &domain.synthetic_tokens);
  v.OnValue({"limit_bytes", "Use only the first bytes of the text or tokens; 0 B: all of them.",
             kNotNegative, Unit::kByteSize},
            &domain.limit_bytes);
}

static void Describe(trainer::DataConfig& data, Visitor& v) {
  using trainer::Sharing, trainer::TokenizerKind;
  Many(v, "domains", "The domains of the text; each has its own held-out part.", data.domains,
       "corpus");
  OneOf<TokenizerKind>(
      v, {"tokenizer", "bytes: every byte is a token; sentencepiece: a trained model."},
      data.tokenizer,
      {{"bytes", TokenizerKind::kBytes}, {"sentencepiece", TokenizerKind::kSentencePiece}});
  v.OnValue({"tokenizer_model", "File of the SentencePiece model.", {}, Unit::kInputFile},
            &data.tokenizer_model);
  v.OnValue({"held_out", "Share at the end of each domain that is never trained on.", kInside},
            &data.held_out);
  v.OnValue({"eval_tokens",
             "Held-out tokens of each domain that an evaluation uses, evenly spaced.", AtLeast(1)},
            &data.eval_tokens);
  OneOf<Sharing>(v,
                 {"sharing",
                  "shuffled: every node draws from all text in its own order; disjoint: every node "
                  "has its own part of each domain; by_domain: node n draws from domain n modulo "
                  "their number; dirichlet: every node mixes the domains by its own draw."},
                 data.sharing,
                 {{"shuffled", Sharing::kShuffled},
                  {"disjoint", Sharing::kDisjoint},
                  {"by_domain", Sharing::kByDomain},
                  {"dirichlet", Sharing::kDirichlet}});
  v.OnValue({"dirichlet_alpha",
             "Concentration of the dirichlet sharing: the smaller, the more unequal the nodes.",
             kPositive},
            &data.dirichlet_alpha);
}

static void Describe(TrainingSection& training, Visitor& v) {
  trainer::OptimizerConfig& o = training.optimizer;
  v.OnValue({"steps", "Steps that every node trains.", AtLeast(1)}, &training.steps);
  v.OnValue({"sequences", "Sequences of a node's step.", AtLeast(1, 1e6)}, &training.sequences);
  v.OnValue({"micro_sequences",
             "Sequences that pass through the model at once, their gradients added up; divides "
             "`sequences`. 0: all of them.",
             kNotNegative},
            &training.micro_sequences);
  v.OnValue({"context", "Tokens of a sequence.", AtLeast(1, 0x1p24)}, &training.context);
  using trainer::ComputeType;
  OneOf<ComputeType>(
      v,
      {"compute_dtype",
       "What matrix products are computed in. model: model.dtype; bfloat16: parameters, gradients, "
       "moments and whatever is summed up or decided on stay float32."},
      training.compute_dtype,
      {{"model", ComputeType::kModel}, {"bfloat16", ComputeType::kBFloat16}});
  v.OnValue({"lr", "Peak learning rate of AdamW.", kPositive}, &o.lr);
  v.OnValue({"warmup_steps", "Steps over which the learning rate rises linearly to its peak.",
             kNotNegative},
            &o.warmup_steps);
  v.OnValue({"decay_steps", "Step at which the cosine decay ends. 0: the last step of the run.",
             kNotNegative},
            &o.decay_steps);
  v.OnValue(
      {"final_lr_fraction",
       "Learning rate at which the warm-up starts and the decay ends, as a share of the peak.",
       kShare},
      &o.final_lr_fraction);
  v.OnValue({"beta1", "AdamW: decay of the first moment.", kProbability}, &o.beta1);
  v.OnValue({"beta2", "AdamW: decay of the second moment.", kProbability}, &o.beta2);
  v.OnValue({"eps", "AdamW: added to the root of the second moment.", kPositive}, &o.eps);
  v.OnValue({"weight_decay", "AdamW: decoupled decay of every trained parameter.", kNotNegative},
            &o.weight_decay);
  v.OnValue({"clip_norm",
             "Largest global L2 norm of a node's gradients; beyond it they are scaled down. 0: no "
             "clipping.",
             kNotNegative},
            &o.clip_norm);
  v.OnValue(
      {"candidates",
       "Samples that a node draws for each one that it trains on: it keeps those whose tokens "
       "the router would send most to its own experts.",
       AtLeast(1, 1000)},
      &training.candidates);
  v.OnValue({"routing_bias",
             "Added at step 0 to the router's logits of the experts that a node trains, in the "
             "choice of experts alone; falls linearly to 0.",
             {.min = -100, .max = 100}},
            &training.routing_bias);
  v.OnValue({"routing_bias_length", "Step at which it reaches 0.", kNotNegative},
            &training.routing_bias_length);
  v.OnValue({"start_from",
             "A saved world (safetensors) to start from instead of the initial one.",
             {},
             Unit::kInputFile},
            &training.start_from);
}

static void Describe(trainer::PoisonConfig& poison, Visitor& v) {
  using trainer::PoisonKind;
  OneOf<PoisonKind>(
      v,
      {"kind",
       "none; noise is added to the update, `factor` times as large; sign_flip: the update times "
       "−factor; scale: times factor; nan: values that are no numbers; stale: the values that the "
       "run began with."},
      poison.kind,
      {{"none", PoisonKind::kNone},
       {"noise", PoisonKind::kNoise},
       {"sign_flip", PoisonKind::kSignFlip},
       {"scale", PoisonKind::kScale},
       {"nan", PoisonKind::kNan},
       {"stale", PoisonKind::kStale}});
  v.OnValue({"factor", "Of noise, sign_flip and scale.", kPositive}, &poison.factor);
  v.OnValue({"after", "Rounds that they are honest for at first.", AtLeast(0, 1e9)}, &poison.after);
}

static void Describe(NodeGroup& group, Visitor& v) {
  v.OnValue({"count", "Nodes of this group.", AtLeast(1, kMaxNodes)}, &group.count);
  v.OnValue({"site", "Where they stand. Empty: with the coordinator."}, &group.site);
  v.OnValue({"speed", "Their speed relative to nodes.compute: 0.5 takes twice as long.", kPositive},
            &group.speed);
  v.OnValue({"memory", "Memory of each for training, for sync.allocation: memory. 0: not known.",
             kNotNegative, Unit::kByteSize},
            &group.memory_bytes);
  Part(v, "link", "The access link that each of them has for itself.", group.link);
  Part(v, "poison", "What they send in place of what they have trained, to test sync.trust.",
       group.poison);
}

static void Describe(trainer::CostConfig& cost, Visitor& v) {
  using trainer::ComputeCost;
  OneOf<ComputeCost>(
      v,
      {"kind",
       "How long a step takes in virtual time. fixed: step_time; flops: its "
       "operations ÷ (device_flops × efficiency); measured: timed once at each start."},
      cost.kind,
      {{"fixed", ComputeCost::kFixed},
       {"flops", ComputeCost::kFlops},
       {"measured", ComputeCost::kMeasured}});
  v.OnValue({"step_time", "Duration of a step at speed 1 where kind is fixed.", kDuration},
            &cost.step_time);
  v.OnValue(
      {"device_flops", "Peak of a device in floating-point operations per second.", kPositive},
      &cost.device_flops);
  v.OnValue({"efficiency",
             "Share of that peak which training reaches.",
             {.min = 0, .max = 1, .above_min = true}},
            &cost.efficiency);
  v.OnValue(
      {"jitter", "Spread of the step times: standard deviation of their logarithm; the mean stays.",
       kNotNegative},
      &cost.jitter);
}

static void Describe(NodesSection& nodes, Visitor& v) {
  v.OnValue({"count", "Number of nodes. 0: the sum of the groups; otherwise it must equal it.",
             AtLeast(0, kMaxNodes)},
            &nodes.count);
  Many(v, "groups",
       "Nodes that are alike, numbered in this order. Without groups, `count` nodes stand with the "
       "coordinator and have the default link.",
       nodes.groups);
  Part(v, "compute", "Virtual time of a training step.", nodes.compute);
  v.OnValue({"coding_bytes_per_s",
             "Bytes of parameters that a node or the coordinator writes down or reads back as "
             "codes in a second; charged where sync.codec has any.",
             kPositive},
            &nodes.coding_bytes_per_s);
  v.OnValue({"only_wait",
             "Nodes do not train: they wait for as long as a step is charged and send their values "
             "as they are. To time the network."},
            &nodes.only_wait);
  v.OnValue({"devices_per_node",
             "Devices that a node has: each takes its share of a step's microbatches (see "
             "training.micro_sequences). The result is that of one device.",
             AtLeast(1, 1024)},
            &nodes.devices_per_node);
}

static void Describe(OutputSection& output, Visitor& v) {
  v.OnValue({"log", "The run's log (HDF5). Empty: results/runs/<name>.h5."}, &output.log);
  v.OnValue({"world", "The trained world (safetensors). Empty: beside the log."}, &output.world);
  v.OnValue({"world_every", "Rounds between saved worlds. 0: saved at the end only.", kNotNegative},
            &output.world_every);
  v.OnValue({"eval_every",
             "Rounds between evaluations on held-out text. 0: at the start and the end only.",
             kNotNegative},
            &output.eval_every);
  v.OnValue({"links_every",
             "Virtual time between two records of what each link carries, while something moves. "
             "none: at the end of each round only.",
             {.min = 0.001, .max = kSomeTime.max}},
            &output.links_every);
  v.OnValue({"journal",
             "Folder for what is needed to go on after a crash. Empty: none in simulation; beside "
             "the log with transport.kind: tcp."},
            &output.journal);
  v.OnValue({"journal_last", "States of the last rounds that the coordinator keeps there.",
             AtLeast(1, 1e6)},
            &output.journal_last);
  v.OnValue({"journal_every", "And those of all rounds that this divides, for ever. 0: no others.",
             kNotNegative},
            &output.journal_every);
}

void Describe(trainer::ModelConfig& model, Visitor& v) {
  using trainer::DType, trainer::QkNorm;
  v.OnValue({"vocabulary", "Number of token ids, V.", AtLeast(2, 0x1p31)}, &model.vocabulary);
  v.OnValue({"layers", "Decoder layers, L.", AtLeast(1, 4096)}, &model.layers);
  v.OnValue({"width", "Width of the hidden state, D.", AtLeast(1, 0x1p18)}, &model.width);
  v.OnValue({"heads", "Query heads of the attention.", AtLeast(1, 4096)}, &model.heads);
  v.OnValue({"kv_heads", "Key and value heads; divides `heads`.", AtLeast(1, 4096)},
            &model.kv_heads);
  v.OnValue({"head_width", "Width of a head. 0: width ÷ heads.", AtLeast(0, 4096)},
            &model.head_width);
  v.OnValue({"experts", "Experts of each layer, E. 0: a dense model.", AtLeast(0, 65536)},
            &model.experts);
  v.OnValue({"experts_per_token", "Experts that each token passes through, K.", AtLeast(1)},
            &model.experts_per_token);
  v.OnValue(
      {"expert_width", "Inner width of an expert, or of the dense layer; F.", AtLeast(1, 0x1p20)},
      &model.expert_width);
  OneOf<QkNorm>(v,
                {"qk_norm",
                 "RMS norm of queries and keys: none, full (over all heads together) or head (over "
                 "each by itself)."},
                model.qk_norm,
                {{"none", QkNorm::kNone}, {"full", QkNorm::kFull}, {"head", QkNorm::kHead}});
  v.OnValue({"renormalise_top_k", "Scale the weights of a token's experts to a sum of 1."},
            &model.renormalise_top_k);
  v.OnValue({"rope_theta", "Base of the rotary position angles.", kPositive}, &model.rope_theta);
  v.OnValue({"norm_eps", "Added to the mean square in every RMS norm.", kPositive},
            &model.norm_eps);
  v.OnValue({"init_std", "Standard deviation of the initial matrices, cut off at three of it.",
             kPositive},
            &model.init_std);
  v.OnValue(
      {"z_loss", "Weight of the loss on the squared log-partition of the output.", kNotNegative},
      &model.z_loss);
  v.OnValue(
      {"load_balance_loss", "Weight of the loss on unequal use of the experts.", kNotNegative},
      &model.load_balance_loss);
  v.OnValue({"router_z_loss", "Weight of the loss on the squared log-partition of the router.",
             kNotNegative},
            &model.router_z_loss);
  OneOf<DType>(v, {"dtype", "Type of the parameters."}, model.dtype,
               {{"float32", DType::kFloat32}, {"float64", DType::kFloat64}});
}

void Describe(CorpusEntry& entry, Visitor& v) {
  v.OnValue({"package", "Debian package that holds the corpus."}, &entry.package);
  v.OnValue({"version", "Version of the package."}, &entry.version);
  v.OnValue({"files", "Its files, in order."}, &entry.files);
  v.OnValue({"about", "What the corpus is."}, &entry.about);
}

void Describe(Scenario& scenario, Visitor& v) {
  v.OnValue({"name", "Name of the run. Empty: that of the file, without folder and ending."},
            &scenario.name);
  v.OnValue({"seed",
             "Seed of the initial world, the order of the data, the step times and random faults."},
            &scenario.seed);
  v.OnValue({"workers", "Threads that train. 0: one per core. The result does not depend on it.",
             kNotNegative},
            &scenario.workers);
  v.OnValue({"devices",
             "What the models are computed on: cpu, or GPUs (cuda:0, cuda:1 …), which the nodes "
             "take in turn. One kind of device gives the same result on every run; another kind "
             "rounds otherwise."},
            &scenario.devices);
  Part(v, "model", "Sizes and options of the model.", scenario.model);
  Part(v, "data", "What the nodes train on, and how they share it.", scenario.data);
  Part(v, "training", "The local training steps.", scenario.training);
  Part(v, "nodes", "The nodes that train: their number, places, links and speeds.", scenario.nodes);
  Part(v, "sync", "How often and by what rule the nodes' work becomes one world.", scenario.sync);
  Part(v, "network", "What carries the bytes between the nodes and the coordinator.",
       scenario.network);
  v.OnSection(
      {"faults", "What goes wrong in a simulated run; what is drawn is from the run's seed."},
      {.visit = [&scenario](Visitor& inner) { Describe(scenario.faults, inner); },
       .reset = [&scenario] { scenario.faults = {}; },
       .idle =
           [&scenario] {
             return scenario.faults.scripted.empty() && scenario.faults.random.empty();
           }});
  Part(v, "transport", "Simulation, or real connections and how they are made.",
       scenario.transport);
  Part(v, "output", "What is written, where and how often.", scenario.output);
}

}  // namespace spes::scenarios
