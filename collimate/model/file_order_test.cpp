#include "collimate/model/file_order.h"

#include <gmock/gmock.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "tests/support/base/error_of.h"
#include "tests/support/model/edit_weights.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using FileOrder = testing::InDirectory;

TEST_F(FileOrder, ATensorWithValuesThatAreNoNumbersIsNamed) {
  for (const char* name : {"model.layers.1.mlp.down_proj.weight", "model.norm.weight"})
    for (const float value : {NAN, INFINITY, -INFINITY})
      for (const char* dtype : {"F32", "BF16"}) {
        const auto weights = testing::tiny_weights(testing::tiny_shape("llama"));
        const int index = weights->index_of(name);
        const int64_t count = weights->params()[static_cast<size_t>(index)].count();
        for (const int64_t place : {int64_t{3}, count - 2}) testing::edit_of(*weights, index)[place] = value;
        save_huggingface(*weights, directory_, {.dtype = dtype});
        for (const bool mapped : {false, true}) {
          const std::string message = base::message_of([&] {  // of mapped weights once they are packed
            Model model(load_huggingface(directory_, "", {.mapped = mapped}, {}), {});
            model.forward(testing::pack({{1, 2, 3}}));
          });
          EXPECT_THAT(message,
                      ::testing::HasSubstr(fmt::format("{} {}] expected finite values, got ", directory_, name)));
          EXPECT_THAT(message, ::testing::HasSubstr("that are NaN or infinite; try downloading the model again, or"));
        }
      }
}

// No pass reads the row, and the head is another table.
TEST_F(FileOrder, ARowOfAMappedTableThatIsNoNumberIsRefusedAtOnce) {
  const auto weights = testing::tiny_weights(testing::tiny_shape("qwen2"));
  testing::edit_of(*weights, weights->index_of("model.embed_tokens.weight"))[24 * 31 + 5] = NAN;
  save_huggingface(*weights, directory_);
  for (const bool mapped : {false, true})
    EXPECT_THAT(base::message_of([&] { load_huggingface(directory_, "", {.mapped = mapped}, {}); }),
                ::testing::HasSubstr("model.embed_tokens.weight] expected finite values, got "));
}

TEST_F(FileOrder, TheLargestAndSmallestValuesAreNumbers) {
  const auto weights = testing::tiny_weights(testing::tiny_shape("llama"));
  const int index = weights->index_of("model.norm.weight");
  const float extremes[] = {FLT_MAX, -FLT_MAX, FLT_MIN, std::numeric_limits<float>::denorm_min(), -0.0F};
  for (size_t i = 0; i < std::size(extremes); ++i)
    testing::edit_of(*weights, index)[static_cast<int64_t>(i)] = extremes[i];
  save_huggingface(*weights, directory_);
  EXPECT_EQ(load_huggingface(directory_, "", {}, {})->checksum(), weights->checksum());
}

}  // namespace
}  // namespace collimate::model
