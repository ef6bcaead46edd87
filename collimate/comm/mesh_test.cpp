#include "collimate/comm/mesh.h"

#include <gtest/gtest.h>

#include "collimate/base/error.h"

namespace collimate::comm {
namespace {

TEST(Mesh, CoordinatesAndLinesAreRowMajor) {
  Mesh mesh({{"dp", 2}, {"tp", 3}});
  EXPECT_EQ(mesh.size(), 6);
  EXPECT_EQ(mesh.size("dp"), 2);
  EXPECT_EQ(mesh.coordinate(4, "dp"), 1);
  EXPECT_EQ(mesh.coordinate(4, "tp"), 1);
  EXPECT_EQ(mesh.line(4, "tp"), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(mesh.line(4, "dp"), (std::vector<int>{1, 4}));
}

TEST(Mesh, AnAbsentAxisHasSizeOne) {
  Mesh mesh({{"dp", 2}});
  EXPECT_EQ(mesh.size("pp"), 1);
  EXPECT_EQ(mesh.coordinate(1, "pp"), 0);
  EXPECT_EQ(mesh.line(1, "pp"), (std::vector<int>{1}));
}

TEST(Mesh, FlattenKeepsTheRanks) {
  const Mesh mesh({{"pp", 2}, {"edp", 2}, {"ep", 2}}, {7, 6, 5, 4, 3, 2, 1, 0});
  EXPECT_EQ(mesh.line(7, "ep"), (std::vector<int>{7, 6}));
  EXPECT_EQ(mesh.line(7, "edp"), (std::vector<int>{7, 5}));
  const Mesh flat = mesh.flatten({"edp", "ep"}, "dp");
  EXPECT_EQ(flat.axes(), (std::vector<Axis>{{"pp", 2}, {"dp", 4}}));
  EXPECT_EQ(flat.ranks(), mesh.ranks());
  EXPECT_EQ(flat.line(3, "dp"), (std::vector<int>{3, 2, 1, 0}));
}

TEST(Mesh, WrongProductsAreErrors) {
  Mesh mesh({{"dp", 4}, {"tp", 2}});
  EXPECT_THROW(Mesh({{"dp", 3}}, mesh.ranks()), base::InputError);
  EXPECT_THROW(mesh.flatten({"tp", "dp"}, "x"), base::InputError);
  EXPECT_THROW(Mesh({{"dp", 2}, {"dp", 2}}), base::InputError);
  EXPECT_THROW(mesh.coordinate(8, "dp"), base::InputError);
}

}  // namespace
}  // namespace collimate::comm
