// DeepSpeed-Chat's training loop (Yao et al. 2023) in a program of one's own: the engine holds actor, critic, reference
// and reward model, the trainer draws experience and trains by it.
#include <fmt/core.h>

#include "collimate/collimate.h"

int main(int argc, char** argv) {
  using namespace collimate;
  if (argc != 7) {
    fmt::print(stderr, "train_rlhf ACTOR CRITIC PROMPTS.jsonl ITERATIONS ANSWER_TOKENS OUTPUT\n");
    return 2;
  }
  try {
    const auto tokenizer = text::load_tokenizer(argv[1]);
    const nlohmann::json rollout = {
        {"prompts_per_iteration", 8}, {"samples_per_prompt", 1}, {"completion_tokens", std::stoll(argv[5])}};
    const nlohmann::json options = {
        {"data", {{"train", argv[3]}}}, {"rollout", rollout}, {"train", {{"warmup_updates", 0}}}};
    DeepSpeedRLHFEngine engine(argv[1], argv[2], *tokenizer, std::stoll(argv[4]), options);
    DeepSpeedPPOTrainer trainer(engine);
    for (int64_t i = 0; i < engine.total_iterations(); ++i) {
      const Batch experience = trainer.generate_experience(engine.prompts(i));
      const auto [actor_loss, critic_loss] = trainer.train_rlhf(experience);
      fmt::print("iteration {}: actor loss {:.4f}, critic loss {:.4f}\n", i + 1, actor_loss, critic_loss);
    }
    engine.save(argv[6]);
  } catch (const base::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "train_rlhf: {}\n", error.what());
    return 1;
  }
}
