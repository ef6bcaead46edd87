#include "collimate/serve/form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/serve/api.h"

namespace collimate::serve {
namespace {

using nlohmann::ordered_json;

generate::SamplingParams form(const std::string& fields, Endpoint endpoint = Endpoint::kCompletions) {
  const std::string asked =
      endpoint == Endpoint::kChat ? R"("messages": [{"role": "user", "content": "Hi"}])" : R"("prompt": "Hi")";
  return parse_request(endpoint, "{" + asked + ", " + fields + "}", {}).sampling;
}

TEST(Form, SchemasKeepTheOrderOfTheirProperties) {
  const std::string schema = R"({"type":"object","properties":{"z":{},"a":{}}})";
  EXPECT_EQ(
      form(R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": )" +
               schema + "}}",
           Endpoint::kChat)
          .json_schema,
      schema);
  EXPECT_EQ(form(R"("structured_outputs": {"json": )" + schema + "}").json_schema, schema);
  EXPECT_EQ(form(R"("guided_json": )" + schema).json_schema, schema);
  EXPECT_EQ(form(R"("guided_json": )" + ordered_json(schema).dump()).json_schema, schema);
  EXPECT_EQ(form(R"("response_format": {"type": "json_object"})").json_schema, R"({"type":"object"})");
  EXPECT_EQ(form(R"("structured_outputs": {"json_object": true, "regex": null})").json_schema, R"({"type":"object"})");
}

TEST(Form, ExpressionsAndChoices) {
  EXPECT_EQ(form(R"("structured_outputs": {"regex": "a+"})").regex, "a+");
  EXPECT_EQ(form(R"("guided_regex": "a+", "temperature": 0)", Endpoint::kChat).regex, "a+");
  EXPECT_EQ(form(R"("structured_outputs": {"choice": ["a.b", "c"]})").regex, "(?:a\\.b|c)");
  EXPECT_EQ(form(R"("guided_choice": ["", "c|"])").regex, "(?:|c\\|)");
}

TEST(Form, NoneLeavesTheAnswerAsItIs) {
  for (const char* none :
       {R"("response_format": {"type": "text"})", R"("response_format": null)",
        R"("structured_outputs": {"json": null, "json_object": false})", R"("guided_regex": null)"}) {
    const generate::SamplingParams sampling = form(none);
    EXPECT_TRUE(sampling.regex.empty() && sampling.json_schema.empty()) << none;
  }
}

TEST(Form, ErrorsNameTheField) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"("response_format": {"type": "xml"})", "response_format"},
      {R"("response_format": "json_object")", "response_format"},
      {R"("response_format": {"type": "json_schema"})", "response_format"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"name": "n"}})", "response_format"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": 5}})",
       "response_format.json_schema.schema"},
      {R"("structured_outputs": 5)", "structured_outputs"},
      {R"("structured_outputs": {"grammar": "root ::= x"})", "structured_outputs"},
      {R"("structured_outputs": {"regex": ""})", "structured_outputs.regex"},
      {R"("structured_outputs": {"regex": "a", "json": {}})", "structured_outputs.json"},
      {R"("structured_outputs": {"json_object": "yes"})", "structured_outputs.json_object"},
      {R"("structured_outputs": {"choice": []})", "structured_outputs.choice"},
      {R"("guided_choice": ["a", 5])", "guided_choice"},
      {R"("guided_json": "")", "guided_json"},
      {R"("guided_regex": ["a"])", "guided_regex"},
      {R"("guided_regex": "a", "response_format": {"type": "json_object"})", "response_format"}};
  for (const auto& [fields, param] : wrong) {
    try {
      form(fields);
      ADD_FAILURE() << fields;
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status, 400);
      EXPECT_EQ(error.param, param) << fields;
    }
  }
}

}  // namespace
}  // namespace collimate::serve
