// SPDX-License-Identifier: Apache-2.0
// The profiler as programs see it: sessions, markers, and the profile of a whole process that the
// setting `profile` asks for.
#include "tracefire/profiler.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "core/base/settings.h"
#include "tools/observe/profile_collect.h"
#include "tracefire/error.h"

namespace tracefire::profiler {
namespace {

std::mutex session_mutex;
std::unique_ptr<Collector> session;

}  // namespace

void start(const Options& options) {
  const std::lock_guard<std::mutex> lock(session_mutex);
  if (session) {
    error(ErrorCode::kBadUsage,
          "a profile is being recorded already; stop() it before the next is started")
        .throw_if_error();
  }
  session = std::make_unique<Collector>(options);
}

Profile stop() {
  std::unique_ptr<Collector> ended;
  {
    const std::lock_guard<std::mutex> lock(session_mutex);
    ended = std::move(session);
  }
  if (!ended) {
    error(ErrorCode::kBadUsage, "no profile is being recorded; start() one first").throw_if_error();
  }
  ended->close();
  return ended->result();
}

bool running() {
  const std::lock_guard<std::mutex> lock(session_mutex);
  return session != nullptr;
}

Session::Session(const Options& options) : open_(true) { start(options); }

Session::~Session() {
  if (!open_) return;
  const std::lock_guard<std::mutex> lock(session_mutex);
  session.reset();
}

Profile Session::stop() {
  Profile profile = profiler::stop();
  open_ = false;
  return profile;
}

Annotation::Annotation(const std::string& name, uint8_t kind, int64_t step)
    : step_(step), kind_(kind) {
  if (!Events::instance().wants_spans()) return;
  name_ = name;
  start_ns_ = Events::now_ns();
}

void Annotation::stop() {
  if (start_ns_ == 0) return;
  SpanEvent event{std::move(name_), static_cast<SpanKind>(kind_), step_, start_ns_,
                  Events::now_ns() - start_ns_};
  start_ns_ = 0;
  Events::instance().publish(event);
}

namespace {

/// A profile from the load of the library to the end of the process, for TRACEFIRE_PROFILE. Beside
/// it the program may record profiles of its own.
const struct WholeProcess {
  WholeProcess() {
    if (settings::profile().empty()) return;
    owner = getpid();
    collector = new Collector(Options{});
    std::atexit(write);
  }

  static void write() {
    if (getpid() != owner) return;  // a forked copy
    const std::string folder = settings::profile() + "/" + std::to_string(owner);
    try {
      collector->close();
      collector->result().write(folder);
    } catch (const Error& failure) {
      std::fprintf(stderr, "tracefire: the profile was not written: %s\n", failure.what());
    }
  }

  static inline pid_t owner = 0;
  static inline Collector* collector = nullptr;  // lives as long as threads may publish
} whole_process;

}  // namespace

}  // namespace tracefire::profiler
