// SPDX-License-Identifier: Apache-2.0
// The shortest program: a network learns to read scanned digits.
#include <cstdio>

#include "tracefire/nn.h"

using namespace tracefire;

int main() {
  const auto [train, test] = data::split_every(data::digits(), 5);
  nn::Sequential model({nn::Dense(128, nn::relu), nn::Dropout(0.2), nn::Dense(10)});
  model.compile({.optimizer = optim::Adam(),
                 .loss = nn::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {nn::SparseCategoricalAccuracy()}});
  model.fit(train, {.batch_size = 64, .epochs = 20});
  std::printf("accuracy %.4f\n", model.evaluate(test)["accuracy"]);
}
