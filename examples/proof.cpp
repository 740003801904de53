// SPDX-License-Identifier: Apache-2.0
// Where did it run? The executor's records tell: operation, device, kernel, runs, work, and a
// verdict.
#include <cstdio>

#include "tracefire/config.h"
#include "tracefire/nn.h"
#include "tracefire/observe.h"

using namespace tracefire;

int main() {
  const data::Dataset digits = data::digits();
  nn::Sequential model({nn::Dense(64, nn::relu), nn::Dense(10)});
  model.compile({.optimizer = optim::Sgd(0.1),
                 .loss = nn::SparseCategoricalCrossentropy({.from_logits = true})});
  reset_proof();
  model.fit(digits, {.batch_size = 64, .epochs = 5, .verbose = false});
  const Proof trained = proof();
  std::printf("%s\n", trained.str().c_str());
  if (trained.verdict != Verdict::kOnGpu) std::printf("%s\n", why_no_gpu().c_str());
  std::printf("verdict %s\n", to_text(trained.verdict));
}
