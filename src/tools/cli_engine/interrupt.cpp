// SPDX-License-Identifier: Apache-2.0
#include "tools/cli_engine/interrupt.h"

#include <signal.h>

#include <atomic>

#include "tracefire/config.h"

namespace tracefire::cli {
namespace {

std::atomic<bool> interrupted{false};
struct sigaction before_interrupt;

void note_interrupt(int) {
  // The second Ctrl-C is for work that does not stop: it ends the process.
  interrupted = true;
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGINT, &usual, nullptr);
}

}  // namespace

InterruptScope::InterruptScope() {
  interrupted = false;
  ::sigaction(SIGINT, nullptr, &before_interrupt);
  if (before_interrupt.sa_handler != SIG_IGN) {
    struct sigaction ours {};
    ours.sa_handler = &note_interrupt;
    ::sigaction(SIGINT, &ours, nullptr);
  }
  set_interrupt_check([] { return interrupted.load(); });
}

InterruptScope::~InterruptScope() {
  set_interrupt_check({});
  ::sigaction(SIGINT, &before_interrupt, nullptr);
}

}  // namespace tracefire::cli
