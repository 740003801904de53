// SPDX-License-Identifier: Apache-2.0
//
// libtracefire_inject.so. The CUDA driver loads it into a process in cuInit, where
// CUDA_INJECTION64_PATH names it, and calls InitializeInjection(). It asks CUPTI for activity
// records, adds them up (aggregate.h) and writes two files into a private folder
// (record_format.h). It is a guest in somebody else's program: it installs no signal handler, opens
// no socket, keeps no file open, does nothing in forked children, and every failure only ends the
// tracing. All of it is switched off where the file or the folder could be written by others.
//
//   TRACEFIRE_PROVE_DIR     folder for the files: absolute, of this user, mode 0700
//   TRACEFIRE_PROVE_CUPTI   "13=/path/libcupti.so.13:12=/path/libcupti.so.12", where none is loaded
//   TRACEFIRE_PROVE_LIMIT   bytes of the window file (33554432)
//   TRACEFIRE_PROVE_GRAPHS  "node" (default) shows the kernels of CUDA graphs, "graph" whole graphs
//   TRACEFIRE_PROVE_OWNER   user id whose folder and library root may use too, in containers
//   TRACEFIRE_PROVE_BEAT_MS how often buffers are collected (250)
//   TRACEFIRE_PROVE_BUFFER_KB size of one of CUPTI's buffers (2048)
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/loader_trap.h"
#include "core/base/recorder.h"
#include "tools/inject/aggregate.h"
#include "tools/inject/api_class.h"

namespace tracefire::inject {
namespace {

constexpr uint64_t kMostBufferBytes = uint64_t{64} << 20;  // of all buffers
constexpr int kBeatsPerSnapshot = 4;
constexpr int kIdleBuffers = 4;

struct Guest {
  CuptiApi cupti;
  Aggregate* totals = nullptr;
  uint8_t* snapshot = nullptr;
  char folder[4096] = "";
  char stem[96] = "";  // "p1234-0a1b2c3d-5678"
  long owner = -1;     // of the folder, where that is another user's and this one is root
  long beat_ms = 250;
  size_t buffer_bytes = size_t{2} << 20;  // large, so that launches seldom meet an exchange
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;       // totals, snapshot
  pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;  // idle, idle_count
  uint8_t* idle[kIdleBuffers] = {};
  int idle_count = 0;
  pthread_mutex_t beat_lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t beat_changed;
  bool stop = false;     // beat_lock
  bool stopped = false;  // beat_lock
  std::atomic<bool> dead{false};
  std::atomic<uint64_t> out{0}, most_out{0}, refused{0}, dropped{0};
};
Guest* guest = nullptr;

uint64_t nanoseconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

Clocks read_clocks() {
  Clocks c;
  if (guest->cupti.cuptiGetTimestamp == nullptr ||
      guest->cupti.cuptiGetTimestamp(&c.cupti) != kCuptiSuccess) {
    c.cupti = nanoseconds(CLOCK_REALTIME);
  }
  c.real = nanoseconds(CLOCK_REALTIME);
  c.monotonic = nanoseconds(CLOCK_MONOTONIC);
  c.cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    c.resident_peak = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  }
  return c;
}

/// One line on stderr, for refusals alone.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
void say(const char* format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  const int n = vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  if (n > 0) {
    const size_t length =
        static_cast<size_t>(n) < sizeof(line) ? static_cast<size_t>(n) : sizeof(line) - 1;
    for (size_t i = 0; i < length; ++i) {  // what came from outside may hold control characters
      if (static_cast<unsigned char>(line[i]) < ' ') line[i] = '?';
    }
    line[length < sizeof(line) - 1 ? length : length - 1] = '\n';
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, line, length < sizeof(line) - 1 ? length + 1 : length);
  }
}

void copy_text(char* to, size_t size, const char* from) {
  const size_t length = strnlen(from, size - 1);
  memcpy(to, from, length);
  to[length] = '\0';
}

bool write_all(const char* name, int flags, const uint8_t* data, size_t size) {
  char path[sizeof(Guest::folder) + 128];
  snprintf(path, sizeof(path), "%s/%s", guest->folder, name);
  const int file = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
  if (file < 0) return false;
  bool good = guest->owner < 0 ||
              fchown(file, static_cast<uid_t>(guest->owner), static_cast<gid_t>(-1)) == 0;
  while (size > 0 && good) {
    const ssize_t n = write(file, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      good = false;
    } else {
      data += n;
      size -= static_cast<size_t>(n);
    }
  }
  close(file);
  return good;
}

bool append_chunk(void*, const uint8_t* data, size_t size) {
  const recorder::QuietSignals quiet;
  char name[128];
  snprintf(name, sizeof(name), "%s.win", guest->stem);
  return write_all(name, O_APPEND, data, size);
}

/// Needs guest->lock.
void write_snapshot() {
  const size_t size = guest->totals->snapshot(guest->snapshot, kMaxSnapshotBytes);
  if (size == 0) return;
  const recorder::QuietSignals quiet;
  char fresh[128];
  snprintf(fresh, sizeof(fresh), "%s.sum.new", guest->stem);
  if (!write_all(fresh, O_TRUNC, guest->snapshot, size)) return;
  char from[sizeof(Guest::folder) + 128];
  char to[sizeof(Guest::folder) + 128];
  snprintf(from, sizeof(from), "%s/%s", guest->folder, fresh);
  snprintf(to, sizeof(to), "%s/%s.sum", guest->folder, guest->stem);
  rename(from, to);
}

// --- what CUPTI calls ---

/// Buffers are used again: pages of fresh ones would be made by the thread that launches, while it
/// launches, and taken from all threads again with each buffer that is freed.
uint8_t* take_buffer() {
  uint8_t* taken = nullptr;
  pthread_mutex_lock(&guest->idle_lock);
  if (guest->idle_count > 0) taken = guest->idle[--guest->idle_count];
  pthread_mutex_unlock(&guest->idle_lock);
  if (taken != nullptr) return taken;
  void* memory = nullptr;
  return posix_memalign(&memory, 64, guest->buffer_bytes) == 0 ? static_cast<uint8_t*>(memory)
                                                               : nullptr;
}

void give_back(uint8_t* buffer) {
  if (!guest->dead) {  // in a forked child the lock may be another thread's that is not there
    pthread_mutex_lock(&guest->idle_lock);
    if (guest->idle_count < kIdleBuffers) {
      guest->idle[guest->idle_count++] = buffer;
      buffer = nullptr;
    }
    pthread_mutex_unlock(&guest->idle_lock);
  }
  free(buffer);
}

void buffer_requested(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = nullptr;
  *size = 0;
  *most_records = 0;
  if (guest->dead) return;
  const uint64_t out = guest->out.fetch_add(1) + 1;
  uint8_t* memory = nullptr;
  if (out * guest->buffer_bytes > kMostBufferBytes || (memory = take_buffer()) == nullptr) {
    guest->out.fetch_sub(1);
    guest->refused.fetch_add(1);
    return;  // CUPTI drops records and counts them
  }
  uint64_t most = guest->most_out.load();
  while (most < out && !guest->most_out.compare_exchange_weak(most, out)) {
  }
  *buffer = memory;
  *size = guest->buffer_bytes;
}

/// Asks how many records were dropped since the last time: also where no buffer comes any more.
void count_dropped() {
  size_t dropped = 0;
  if (guest->cupti.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == kCuptiSuccess) {
    guest->dropped.fetch_add(dropped);
  }
}

void buffer_completed(void*, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  if (buffer == nullptr) return;
  guest->out.fetch_sub(1);
  if (!guest->dead && valid > 0) {
    uint64_t now = 0;
    if (guest->cupti.cuptiGetTimestamp(&now) != kCuptiSuccess) now = 0;
    count_dropped();
    pthread_mutex_lock(&guest->lock);
    if (!guest->dead) {
      guest->totals->begin_buffer(now);
      void* record = nullptr;
      while (guest->cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == kCuptiSuccess) {
        guest->totals->record(record);
      }
      guest->totals->end_buffer();
    }
    pthread_mutex_unlock(&guest->lock);
  }
  give_back(buffer);
}

// --- the beat ---

void beat(bool last) {
  count_dropped();
  const Clocks clocks = read_clocks();
  pthread_mutex_lock(&guest->lock);
  guest->totals->count_buffers(guest->out, guest->most_out, guest->refused, guest->dropped);
  if (last) {
    guest->totals->finish(clocks);
  } else {
    guest->totals->beat(clocks);
  }
  static int beats = 0;
  if (last || beats++ % kBeatsPerSnapshot == 0) write_snapshot();
  pthread_mutex_unlock(&guest->lock);
}

void* beat_loop(void*) {
  pthread_setname_np(pthread_self(), "tracefire");
  pthread_mutex_lock(&guest->beat_lock);
  while (!guest->stop) {
    timespec until{};
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += guest->beat_ms % 1000 * 1000000;
    until.tv_sec += guest->beat_ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&guest->beat_changed, &guest->beat_lock, &until);
    if (guest->stop) break;
    pthread_mutex_unlock(&guest->beat_lock);
    guest->cupti.cuptiActivityFlushAll(0);
    beat(false);
    pthread_mutex_lock(&guest->beat_lock);
  }
  guest->stopped = true;
  pthread_cond_broadcast(&guest->beat_changed);
  pthread_mutex_unlock(&guest->beat_lock);
  return nullptr;
}

void at_exit() {
  if (guest == nullptr || guest->dead) return;
  pthread_mutex_lock(&guest->beat_lock);
  guest->stop = true;
  pthread_cond_broadcast(&guest->beat_changed);
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += 2;
  while (!guest->stopped &&
         pthread_cond_timedwait(&guest->beat_changed, &guest->beat_lock, &until) == 0) {
  }
  const bool stopped = guest->stopped;
  pthread_mutex_unlock(&guest->beat_lock);
  if (!stopped) return;  // CUPTI hangs: the last snapshot stands, and says that the end is missing
  guest->cupti.cuptiActivityFlushAll(kForcedFlush);
  beat(true);
  guest->dead = true;
}

void in_forked_child() {
  if (guest != nullptr) guest->dead = true;
}

// --- start ---

/// Why the tracing must not begin here, or null.
const char* refusal(const char* folder) {
  if (getauxval(AT_SECURE) != 0) return "the program has more rights than its user";
  Dl_info self{};
  struct stat info {};
  if (dladdr(reinterpret_cast<void*>(&in_forked_child), &self) == 0 || self.dli_fname == nullptr ||
      stat(self.dli_fname, &info) != 0) {
    return "the library does not find its own file";
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "the library's file is writable by others";
  if (info.st_uid != 0 && info.st_uid != geteuid() &&
      long{info.st_uid} != recorder::trusted_owner()) {
    return "the library's file belongs to another user";
  }
  return recorder::why_not_folder(folder, sizeof(Guest::folder) - 128);
}

struct Loaded {
  char cupti[4096];
  char sibling[4096];  // a folder beside the NVIDIA packages that are in use
};

int look_at_loaded(dl_phdr_info* info, size_t, void* data) {
  auto* found = static_cast<Loaded*>(data);
  const char* path = info->dlpi_name;
  if (path == nullptr || path[0] != '/' || strlen(path) >= sizeof(found->cupti)) return 0;
  const char* name = strrchr(path, '/') + 1;
  if (strncmp(name, "libcupti.so", 11) == 0) {
    copy_text(found->cupti, sizeof(found->cupti), path);
  }
  // site-packages/nvidia/cublas/lib/libcublas.so.12, site-packages/nvidia/cu13/lib/…
  const char* packages = strstr(path, "/nvidia/");
  if (packages != nullptr && strstr(packages, "/lib/") != nullptr) {
    snprintf(found->sibling, sizeof(found->sibling), "%.*s", static_cast<int>(packages - path + 7),
             path);
  }
  return 0;
}

/// The path after "13=" in the list of TRACEFIRE_PROVE_CUPTI.
bool listed_path(const char* list, int major, char* path, size_t size) {
  char key[16];
  snprintf(key, sizeof(key), "%d=", major);
  while (list != nullptr && *list != '\0') {
    const char* end = strchrnul(list, ':');
    if (strncmp(list, key, strlen(key)) == 0) {
      list += strlen(key);
      snprintf(path, size, "%.*s", static_cast<int>(end - list), list);
      return path[0] == '/';
    }
    list = *end == ':' ? end + 1 : end;
  }
  return false;
}

void* open_cupti(int major, TraceFacts* facts) {
  Loaded loaded{};
  dl_iterate_phdr(&look_at_loaded, &loaded);
  char path[8192];
  const auto attempt = [&](const char* file) -> void* {
    NamedTrap trap;
    void* handle = open_library(file, getenv("LD_LIBRARY_PATH"), &trap);
    if (handle != nullptr) copy_text(facts->library, sizeof(facts->library), file);
    return handle;
  };
  if (loaded.cupti[0] != '\0') {
    if (void* handle = attempt(loaded.cupti)) return handle;
  }
  for (const char* folder : {"cu13", "cuda_cupti"}) {
    if (loaded.sibling[0] == '\0') break;
    snprintf(path, sizeof(path), "%s/%s/lib/libcupti.so.%d", loaded.sibling, folder, major);
    if (void* handle = attempt(path)) return handle;
  }
  if (listed_path(getenv("TRACEFIRE_PROVE_CUPTI"), major, path, sizeof(path))) {
    if (void* handle = attempt(path)) return handle;
  }
  snprintf(path, sizeof(path), "libcupti.so.%d", major);
  if (void* handle = attempt(path)) return handle;
  const char* const roots[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
  for (const char* root : roots) {
    if (root == nullptr || root[0] != '/') continue;
    for (const char* below : {"extras/CUPTI/lib64", "lib64"}) {
      snprintf(path, sizeof(path), "%s/%s/libcupti.so.%d", root, below, major);
      if (void* handle = attempt(path)) return handle;
    }
  }
  return nullptr;
}

int driver_version() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) driver = RTLD_DEFAULT;
  auto ask = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion"));
  int version = 0;
  return ask != nullptr && ask(&version) == 0 ? version : 0;
}

bool load_functions(void* handle, TraceFacts* facts) {
  CuptiApi& api = guest->cupti;
#define TRACEFIRE_LOAD(name, arguments)                                             \
  api.name = reinterpret_cast<int(*) arguments>(dlsym(handle, #name));              \
  if (api.name == nullptr) {                                                        \
    snprintf(facts->detail, sizeof(facts->detail), "it has no function %s", #name); \
    return false;                                                                   \
  }
  TRACEFIRE_CUPTI_FUNCTIONS(TRACEFIRE_LOAD)
#undef TRACEFIRE_LOAD
#define TRACEFIRE_LOAD(name, arguments) \
  api.name = reinterpret_cast<int(*) arguments>(dlsym(handle, #name));
  TRACEFIRE_CUPTI_OPTIONAL(TRACEFIRE_LOAD)
#undef TRACEFIRE_LOAD
  return true;
}

void ignore_callback(void*, int, uint32_t, const void*) {}

bool failed(int code, const char* call, TraceFacts* facts) {
  if (code == kCuptiSuccess) return false;
  const char* words = nullptr;
  guest->cupti.cuptiGetResultString(code, &words);
  facts->state = code == kCuptiMultipleSubscribers ? TraceState::kTaken : TraceState::kFailed;
  snprintf(facts->detail, sizeof(facts->detail), "%s: %s (%d)", call,
           words == nullptr ? "unknown error" : words, code);
  return true;
}

/// Traces the calls that say what the host did while the GPU waited; all others only cost time.
void enable_calls() {
  CuptiApi& api = guest->cupti;
  if (api.cuptiActivityEnableRuntimeApi == nullptr || api.cuptiActivityEnableDriverApi == nullptr) {
    api.cuptiActivityEnable(kActivityRuntime);
    api.cuptiActivityEnable(kActivityDriver);
    return;
  }
  for (const ApiRange& range : runtime_ranges()) {
    for (uint32_t n = range.first; n <= range.last; ++n) api.cuptiActivityEnableRuntimeApi(n, 1);
  }
  for (const ApiRange& range : driver_ranges()) {
    for (uint32_t n = range.first; n <= range.last; ++n) api.cuptiActivityEnableDriverApi(n, 1);
  }
}

/// Finds CUPTI and asks whether it is free.
bool find_cupti(TraceFacts* facts) {
  CuptiApi& api = guest->cupti;
  facts->driver_version = static_cast<uint32_t>(driver_version());
  const int major = facts->driver_version >= 13000 || facts->driver_version == 0 ? 13 : 12;
  void* handle = open_cupti(major, facts);
  if (handle == nullptr && major == 13) handle = open_cupti(12, facts);
  if (handle == nullptr) {
    facts->state = TraceState::kNoCupti;
    snprintf(facts->detail, sizeof(facts->detail), "libcupti.so.%d was not found", major);
    return false;
  }
  facts->state = TraceState::kFailed;
  if (!load_functions(handle, facts)) return false;
  if (failed(api.cuptiGetVersion(&facts->cupti_version), "cuptiGetVersion", facts)) return false;
  if (facts->cupti_version < kOldestCupti) {
    facts->state = TraceState::kOldCupti;
    return false;
  }
  // Another tool that holds CUPTI would lose its records to us: then it keeps them.
  void* subscriber = nullptr;
  if (failed(api.cuptiSubscribe(&subscriber, &ignore_callback, nullptr), "cuptiSubscribe", facts)) {
    return false;
  }
  api.cuptiUnsubscribe(subscriber);
  return true;
}

void start_tracing(TraceFacts* facts) {
  CuptiApi& api = guest->cupti;
  if (failed(api.cuptiActivityRegisterCallbacks(&buffer_requested, &buffer_completed),
             "cuptiActivityRegisterCallbacks", facts)) {
    return;
  }
  const char* graphs = getenv("TRACEFIRE_PROVE_GRAPHS");
  facts->by_node = graphs == nullptr || strcmp(graphs, "graph") != 0;
  if (!facts->by_node &&
      failed(api.cuptiActivityEnable(kActivityGraphTrace), "cuptiActivityEnable(graphs)", facts)) {
    return;
  }
  if (failed(api.cuptiActivityEnable(kActivityConcurrentKernel), "cuptiActivityEnable(kernels)",
             facts)) {
    return;
  }
  for (const uint32_t kind :
       {kActivityDevice, kActivityMemcpy, kActivityMemcpyPeer, kActivityMemset, kActivityMemory}) {
    const int code = api.cuptiActivityEnable(kind);
    if (code != kCuptiSuccess) {
      snprintf(facts->detail, sizeof(facts->detail), "activity %u is not traced (%d)", kind, code);
    }
  }
  enable_calls();
  facts->state = TraceState::kTracing;
}

void describe_process(ProcessFacts* facts) {
  facts->pid = static_cast<uint32_t>(getpid());
  facts->parent = static_cast<uint32_t>(getppid());
  gethostname(facts->host, sizeof(facts->host) - 1);
  const ssize_t n = readlink("/proc/self/exe", facts->executable, sizeof(facts->executable) - 1);
  facts->executable[n < 0 ? 0 : n] = '\0';
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    const ssize_t length = read(file, facts->command, sizeof(facts->command) - 1);
    for (ssize_t i = 0; i + 1 < length; ++i) {
      if (facts->command[i] == '\0') facts->command[i] = ' ';
    }
    facts->command[length < 0 ? 0 : length] = '\0';
    close(file);
  }
  const recorder::Rank rank = recorder::rank_of_process();
  facts->rank = rank.rank;
  facts->ranks = rank.ranks;
  facts->local_rank = rank.local;
}

bool prepare(const char* folder) {
  void* block = mmap(nullptr, kMaxSnapshotBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) return false;
  static Guest the_guest;
  guest = &the_guest;
  guest->snapshot = static_cast<uint8_t*>(block);
  snprintf(guest->folder, sizeof(guest->folder), "%s", folder);
  char host[128] = "";
  gethostname(host, sizeof(host) - 1);
  // Hosts may share the folder, and a process may become another program.
  snprintf(guest->stem, sizeof(guest->stem), "p%d-%08x-%llu", getpid(), crc32(host, strlen(host)),
           static_cast<unsigned long long>(nanoseconds(CLOCK_MONOTONIC) / 1000));
  struct stat info {};
  if (stat(folder, &info) == 0 && info.st_uid != geteuid()) guest->owner = long{info.st_uid};
  const int64_t beat_ms = recorder::number_of({"TRACEFIRE_PROVE_BEAT_MS"});
  if (beat_ms >= 10 && beat_ms <= 60000) guest->beat_ms = static_cast<long>(beat_ms);
  const int64_t buffer_kb = recorder::number_of({"TRACEFIRE_PROVE_BUFFER_KB"});
  if (buffer_kb >= 64 && buffer_kb <= 16384) {
    guest->buffer_bytes = static_cast<size_t>(buffer_kb) << 10;
  }
  const char* limit = getenv("TRACEFIRE_PROVE_LIMIT");
  const uint64_t window_limit =
      limit == nullptr ? uint64_t{32} << 20 : strtoull(limit, nullptr, 10);
  guest->totals = Aggregate::create(window_limit, &append_chunk, nullptr);
  return guest->totals != nullptr;
}

void start_beat() {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&guest->beat_changed, &monotonic);
  pthread_atfork(nullptr, nullptr, &in_forked_child);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, &beat_loop, nullptr) == 0) {
    pthread_detach(thread);
  } else {
    guest->stopped = true;  // buffers come when they are full and at the end
  }
  atexit(&at_exit);
}

}  // namespace
}  // namespace tracefire::inject

/// What the CUDA driver calls; 1 says that all is well.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  using namespace tracefire::inject;
  const char* folder = getenv("TRACEFIRE_PROVE_DIR");
  if (folder == nullptr || guest != nullptr) return 1;
  if (const char* why = refusal(folder)) {
    say("tracefire prove: this process is not traced: %s (%s)", why, folder);
    return 1;
  }
  const tracefire::recorder::QuietSignals
      quiet;  // threads that start here must not take the program's signals
  if (!prepare(folder)) {
    say("tracefire prove: this process is not traced: the system gives it no memory");
    return 1;
  }
  static ProcessFacts process;
  describe_process(&process);
  static TraceFacts facts;
  const bool found = find_cupti(&facts);
  guest->totals->start(process, read_clocks());  // before the first record
  if (found) start_tracing(&facts);
  char file[sizeof(Guest::stem) + 8];
  snprintf(file, sizeof(file), "%s.sum", guest->stem);
  tracefire::recorder::list_record(guest->folder, process.host, file, guest->owner);
  pthread_mutex_lock(&guest->lock);
  guest->totals->set_trace(facts);
  guest->totals->beat(read_clocks());
  write_snapshot();
  pthread_mutex_unlock(&guest->lock);
  if (facts.state == TraceState::kTracing) start_beat();
  return 1;
}
