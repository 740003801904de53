// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <random>
#include <thread>

#include "core/base/dim_text.h"
#include "tracefire/shape.h"

namespace tracefire {
namespace {

TEST_CASE("symbolic sizes have one form") {
  Dim n = Dim::fresh("N"), m = Dim::fresh("M");
  CHECK(n != m);
  CHECK(n != Dim::fresh("N"));
  CHECK(n + 0 == n);
  CHECK(n * 1 == n);
  CHECK(n * 0 == Dim(0));
  CHECK(n - n == Dim(0));
  CHECK((n + 1) - 1 == n);
  CHECK(n + m == m + n);
  CHECK(n * m == m * n);
  CHECK((n + m) * (n - m) == n * n - m * m);
  CHECK(n * 2 + n * 3 == n * 5);
  CHECK((n + 1) * 28 == n * 28 + 28);
}

TEST_CASE("division is simplified where it is exact, and brought to one form elsewhere") {
  Dim n = Dim::fresh("N"), m = Dim::fresh("M");
  CHECK(floor_div(n * 28, 28) == n);
  CHECK(floor_div(n * 28, n) == Dim(28));
  CHECK(floor_div(n * m * 6, n * 2) == m * 3);
  CHECK(floor_div((n + 1) * (m + 2), m + 2) == n + 1);
  CHECK(floor_div(n, 1) == n);
  CHECK(floor_div(n, 0) == Dim(0));
  CHECK(floor_div(n * 4 + 6, 4) == n + 1);
  CHECK(floor_div(n * 2 + 1, 4) == floor_div(n, 2));
  CHECK(floor_div(n - 1, 2) + 1 == floor_div(n + 1, 2));
  CHECK(floor_div(floor_div(n, 2), 3) == floor_div(n, 6));
  CHECK(floor_div(n, -2) == floor_div(Dim(0) - n, 2));
  CHECK(floor_div(-7, 2) == Dim(-4));
  CHECK(floor_div(n, m).is_symbol());
  Dim small = Dim::fresh("S", 9);
  CHECK(floor_div(small, 10) == Dim(0));
  CHECK(floor_div(small, 9) != Dim(0));
}

TEST_CASE("the larger of two sizes is known where it can be") {
  Dim n = Dim::fresh("N", 100), m = Dim::fresh("M", 10);
  CHECK(max(n, n + 2) == n + 2);
  CHECK(max(n, 0) == n);
  CHECK(max(m, 10) == Dim(10));
  CHECK(max(n, m) == max(m, n));
  CHECK(max(max(n, m), n) == max(n, m));
  CHECK(max(max(n, 3), 5) == max(n, 5));
  CHECK(max(n, n * 2) == n * 2);
}

TEST_CASE("bounds follow the expression") {
  Dim n = Dim::fresh("N", 128), free = Dim::fresh("F");
  CHECK(n.bound() == 128);
  CHECK((n * 28 + 1).bound() == 128 * 28 + 1);
  CHECK((Dim(200) - n).bound() == 200);
  CHECK(floor_div(n, 3).bound() == 42);
  CHECK(max(n, 500 - n).bound() == 500);
  CHECK(Dim(7).bound() == 7);
  CHECK(free.bound() == Dim::kUnbounded);
  CHECK((free * 2 + 1).bound() == Dim::kUnbounded);
  CHECK(Dim::fresh("X", -3).bound() == 0);
}

TEST_CASE("numbers saturate instead of wrapping around") {
  Dim big = int64_t{1} << 40;
  CHECK(big * big == Dim(std::numeric_limits<int64_t>::max()));
  CHECK(Shape({big, big, 0}).elements() == Dim(0));
  CHECK(Dim(std::numeric_limits<int64_t>::max()) + 1 == Dim(std::numeric_limits<int64_t>::max()));
  CHECK(floor_div(std::numeric_limits<int64_t>::min(), -1) ==
        Dim(std::numeric_limits<int64_t>::max()));
}

TEST_CASE("sizes evaluate, substitute and print") {
  Dim n = Dim::fresh("N"), m = Dim::fresh("M");
  DimEnv env;
  CHECK(env.eval(n + 1) == -1);
  env.set(n.symbol(), 5);
  CHECK(env.eval(n * n + floor_div(n, 2) - 1) == 26);
  CHECK(env.eval(n + m) == -1);
  env.set(m.symbol(), 7);
  CHECK(env.eval(max(n, m) * 2) == 14);
  CHECK(env.eval(floor_div(n, m - 7)) == 0);
  CHECK(substitute(n * m + 1, {{m.symbol(), Dim(4)}}) == n * 4 + 1);
  CHECK(substitute(floor_div(n * m, 8), {{m.symbol(), Dim(8)}}) == n);
  CHECK(free_symbols(n * m + n) == std::vector<int32_t>{n.symbol(), m.symbol()});
  CHECK(free_symbols(3).empty());
  CHECK((n + 1).str() == "(N + 1)");
  CHECK((n * 28).str() == "(N * 28)");
  CHECK((3 - n).str() == "(3 - N)");
  CHECK((0 - n).str() == "(0 - N)");
  CHECK((m * n * 2 - 5).str() == "(M * N * 2 - 5)");
  CHECK(floor_div(n + 1, 2).str() == "((N + 1) // 2)");
  CHECK(max(m, n).str() == "max(M, N)");
  CHECK(max(m, 1).str() == "max(M, 1)");
}

TEST_CASE("shapes") {
  Dim n = Dim::fresh("N");
  Shape shape = {n, 784};
  CHECK(shape.str() == "(N, 784)");
  CHECK(Shape().str() == "()");
  CHECK(Shape({3}).str() == "(3,)");
  CHECK(Shape().elements() == Dim(1));
  CHECK(shape.elements() == n * 784);
  CHECK_FALSE(shape.is_constant());
  DimEnv env;
  CHECK(shape.bind(env) == shape);
  env.set(n.symbol(), 32);
  CHECK(shape.bind(env) == Shape({32, 784}));
  CHECK(Shape::of({2, 3}).sizes() == std::vector<int64_t>{2, 3});
}

/// A random expression, and its value computed beside it.
struct Pair {
  Dim dim;
  int64_t value;
};

Pair random_pair(std::mt19937& rng, const std::vector<Pair>& leaves, int depth) {
  auto pick = [&rng](int n) { return std::uniform_int_distribution<int>(0, n - 1)(rng); };
  if (depth == 0) {
    if (pick(3) == 0) {
      int64_t number = pick(9);
      return {number, number};
    }
    return leaves[static_cast<size_t>(pick(static_cast<int>(leaves.size())))];
  }
  Pair a = random_pair(rng, leaves, depth - 1), b = random_pair(rng, leaves, depth - 1);
  switch (pick(5)) {
    case 0:
      return {a.dim + b.dim, a.value + b.value};
    case 1:
      return {a.dim - b.dim, a.value - b.value};
    case 2:
      return {a.dim * b.dim, a.value * b.value};
    case 3:
      return {max(a.dim, b.dim), std::max(a.value, b.value)};
    default: {
      int64_t by = pick(5) + 1;
      int64_t q = a.value / by - (a.value % by < 0 ? 1 : 0);
      return {floor_div(a.dim, by), q};
    }
  }
}

TEST_CASE("whatever the form, the number is right") {
  std::mt19937 rng(20240607);
  for (int round = 0; round < 3000; ++round) {
    std::vector<Pair> leaves;
    DimEnv env;
    std::unordered_map<int32_t, Dim> by;
    for (const char* name : {"A", "B", "C"}) {
      int64_t value = std::uniform_int_distribution<int>(0, 12)(rng);
      leaves.push_back({Dim::fresh(name, 12), value});
      env.set(leaves.back().dim.symbol(), value);
      by[leaves.back().dim.symbol()] = Dim(value);
    }
    Pair pair = random_pair(rng, leaves, 4);
    CAPTURE(pair.dim.str());
    Shape bound = Shape({pair.dim}).bind(env);
    REQUIRE(bound[0] == Dim(pair.value));
    REQUIRE(substitute(pair.dim, by) == Dim(pair.value));
    REQUIRE(pair.dim.bound() >= pair.value);
  }
}

TEST_CASE("an expression that grows without end becomes a symbol of its own") {
  Dim n = Dim::fresh("N", 10), x = n;
  for (int i = 0; i < 40; ++i) x = max(x, floor_div(x, n + 1) * Dim::fresh("K", 3));
  CHECK(x.str().size() < 20000);
  CHECK(x.bound() >= 10);
}

TEST_CASE("equal expressions made by many threads are one [threads]") {
  Dim n = Dim::fresh("N"), m = Dim::fresh("M");
  std::vector<std::vector<Dim>> made(4);
  std::vector<std::thread> threads;
  for (std::vector<Dim>& mine : made) {
    threads.emplace_back([&mine, n, m] {
      for (int i = 0; i < 500; ++i) mine.push_back(floor_div(n * i + m, 7) + max(n, m + i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<Dim>& mine : made) CHECK(mine == made[0]);
}

}  // namespace
}  // namespace tracefire
