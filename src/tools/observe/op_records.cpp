// SPDX-License-Identifier: Apache-2.0
// The executor's records for `tracefire prove`: which operations of which layers and source lines
// ran where. Where TRACEFIRE_PROVE_DIR names a private folder, a process that runs operations keeps
// p<PID>-<HOST>-<N>.ops.json there: totals, replaced as a whole about once a second and at exit.
#include <fcntl.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "core/base/event.h"
#include "core/base/recorder.h"
#include "tools/observe/step_counts.h"
#include "tools/observe/verdict.h"

namespace tracefire {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostRows = 4096;   ///< told apart; the rest shares rows
constexpr size_t kMostNames = 256;   ///< of programs
constexpr size_t kMostSymbols = 16;  ///< of a row
constexpr size_t kMostText = 512;    ///< bytes of a text
constexpr size_t kParts = 256;       ///< of the time line
constexpr size_t kLongestFolder = 4096 - 128;
constexpr const char* kVarious = "(various)";
constexpr int64_t kSecond = 1000000000;

int64_t nanoseconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * kSecond + t.tv_nsec;
}

std::string cut(const std::string& text) { return text.substr(0, kMostText); }

struct Row {
  Device device;
  Placement placement = Placement::kOnDevice;
  std::string library, reason, precision;
  std::map<std::string, uint64_t> symbols;  ///< kernels: how many runs launched each
  uint64_t runs = 0;
  double flops = 0, bytes = 0;
};

struct ProgramTotals {
  uint64_t runs = 0, graph_launches = 0;
  int64_t host_ns = 0, longest_ns = 0;
};

/// Operation, layer, source line, device, kernel, placement.
using Key = std::tuple<std::string, std::string, std::string, Device, std::string, Placement>;

struct Totals {
  StepCounts counts;
  std::map<Key, Row> rows;
  std::map<std::string, ProgramTotals> names;
  std::array<int64_t, kParts> parts{};  ///< host time in programs
  int64_t part_ns = kSecond / 100;
  uint64_t runs = 0, graph_launches = 0, waits = 0, bytes_in = 0, bytes_out = 0;
  bool crowded = false;
};

class OpRecords {
 public:
  /// Null where this process is not recorded.
  static OpRecords* start() {
    const char* folder = std::getenv("TRACEFIRE_PROVE_DIR");
    if (folder == nullptr || recorder::why_not_folder(folder, kLongestFolder) != nullptr) {
      return nullptr;  // the injected library says why on stderr
    }
    instance_ = new OpRecords(folder);  // never destroyed: programs run until the process ends
    Events::Subscriber subscriber;
    subscriber.run = [](const RunEvent& event) { instance_->add(event); };
    subscriber.copy = [](const CopyEvent& event) { instance_->add(event); };
    subscriber.synchronize = [](Device) { instance_->waited(); };
    Events::instance().subscribe(std::move(subscriber));
    std::atexit([] { instance_->finish(); });
    // A child goes on with records of its own, so that a daemon's work is seen and nothing twice.
    pthread_atfork([] { instance_->mutex_.lock(); }, [] { instance_->mutex_.unlock(); },
                   [] {
                     instance_->begin();
                     instance_->mutex_.unlock();
                   });
    return instance_;
  }

 private:
  explicit OpRecords(const char* folder) : folder_(folder) {
    gethostname(host_, sizeof(host_) - 1);
    struct stat info {};
    if (stat(folder, &info) == 0 && info.st_uid != geteuid()) owner_ = long{info.st_uid};
    begin();
  }

  void begin() {
    totals_ = {};
    begun_real_ = nanoseconds(CLOCK_REALTIME);
    begun_ = nanoseconds(CLOCK_MONOTONIC);
    due_ = begun_ + kSecond / 4;
    char stem[96];
    std::snprintf(stem, sizeof(stem), "p%d-%08x-%lld", getpid(),
                  recorder::crc32(host_, std::strlen(host_)),
                  static_cast<long long>(begun_ / 1000));
    path_ = folder_ + "/" + stem + ".ops.json";
    listed_ = false;
  }

  /// What moves the counts of a step into its row.
  auto add_row() {
    return [this](const ProgramRecord& program, const StepRecord& step, const StepWork& work,
                  uint64_t runs) {
      Row& row = find(step);
      row.runs += runs;
      row.flops += static_cast<double>(runs) * work.flops;
      row.bytes += static_cast<double>(runs) * work.bytes;
      if (step.op == "matmul") row.precision = program.precision;
      // Programs for other shapes (a last, smaller batch) may have other kernels for one row.
      const std::set<std::string> symbols(step.kernel_symbols.begin(), step.kernel_symbols.end());
      for (const std::string& symbol : symbols) {
        if (row.symbols.size() >= kMostSymbols && row.symbols.count(symbol) == 0) continue;
        row.symbols[symbol] += runs;
      }
    };
  }

  void add(const RunEvent& event) {
    if (!event.program || !event.work) return;
    std::lock_guard<std::mutex> lock(mutex_);
    Totals& t = totals_;
    t.counts.add(event, add_row());
    ProgramTotals& name = program(event.program->name);
    name.runs += event.repeats;
    name.graph_launches += event.graph_launches;
    name.host_ns += event.host_ns;
    name.longest_ns = std::max(name.longest_ns, event.host_ns);
    t.graph_launches += event.graph_launches;
    if (!event.captured) t.runs += event.repeats;
    spread(event.start_ns - begun_, event.host_ns);
    write_if_due();
  }

  void add(const CopyEvent& event) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (event.kind == CopyKind::kHostToDevice) totals_.bytes_in += event.bytes;
    if (event.kind == CopyKind::kDeviceToHost) totals_.bytes_out += event.bytes;
  }

  void waited() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++totals_.waits;
  }

  ProgramTotals& program(const std::string& name) {
    const auto found = totals_.names.find(name);
    if (found != totals_.names.end()) return found->second;
    return totals_.names[totals_.names.size() < kMostNames ? name : kVarious];
  }

  void spread(int64_t start, int64_t length) {
    int64_t at = std::max<int64_t>(start, 0);
    const int64_t end = std::max(start + length, at);
    while (end / totals_.part_ns >= static_cast<int64_t>(kParts)) {
      for (size_t i = 0; i < kParts / 2; ++i) {
        totals_.parts[i] = totals_.parts[2 * i] + totals_.parts[2 * i + 1];
      }
      std::fill(totals_.parts.begin() + kParts / 2, totals_.parts.end(), 0);
      totals_.part_ns *= 2;
    }
    while (at < end) {
      const int64_t part = at / totals_.part_ns;
      const int64_t stop = std::min(end, (part + 1) * totals_.part_ns);
      totals_.parts[static_cast<size_t>(part)] += stop - at;
      at = stop;
    }
  }

  Row& find(const StepRecord& step) {
    Key key{step.op, step.name, step.location, step.device, step.kernel, step.placement};
    auto found = totals_.rows.find(key);
    if (found == totals_.rows.end() && totals_.rows.size() >= kMostRows) {
      totals_.crowded = true;
      key = {step.op, kVarious, kVarious, step.device, step.kernel, step.placement};
      found = totals_.rows.find(key);
    }
    if (found != totals_.rows.end()) return found->second;
    Row& row = totals_.rows[key];
    row.device = step.device;
    row.placement = step.placement;
    row.library = step.library;
    row.reason = step.reason;
    return row;
  }

  Json document(bool last) {
    totals_.counts.drain(add_row());
    WorkByPlace work;
    std::set<std::string> precisions;
    Json rows = Json::array();
    for (const auto& [key, row] : totals_.rows) {
      work.add(row.device, row.placement, row.flops);
      if (!row.precision.empty()) precisions.insert(row.precision);
      Json symbols = Json::array();
      Json launches = Json::array();
      for (const auto& [symbol, runs] : row.symbols) {
        symbols.push_back(symbol);
        launches.push_back(runs);
      }
      rows.push_back({{"op", cut(std::get<0>(key))},
                      {"layer", cut(std::get<1>(key))},
                      {"location", cut(std::get<2>(key))},
                      {"device", row.device.str()},
                      {"kernel", cut(std::get<4>(key))},
                      {"library", cut(row.library)},
                      {"placement", to_text(row.placement)},
                      {"reason", cut(row.reason)},
                      {"symbols", symbols},
                      {"launches", launches},
                      {"runs", row.runs},
                      {"flops", row.flops},
                      {"bytes", row.bytes}});
    }
    Json names = Json::array();
    for (const auto& [name, p] : totals_.names) {
      names.push_back({{"name", cut(name)},
                       {"runs", p.runs},
                       {"graph_launches", p.graph_launches},
                       {"host_ns", p.host_ns},
                       {"longest_ns", p.longest_ns}});
    }
    const recorder::Rank rank = recorder::rank_of_process();
    const int64_t now = nanoseconds(CLOCK_MONOTONIC);
    const auto used = static_cast<size_t>((now - begun_) / totals_.part_ns) + 1;
    return {{"schema", "tracefire.ops/1"},
            {"pid", getpid()},
            {"parent", getppid()},
            {"host", host_},
            {"rank", rank.rank},
            {"ranks", rank.ranks},
            {"local_rank", rank.local},
            {"begun_ns", begun_real_},
            {"wall_ns", now - begun_},
            {"cpu_ns", nanoseconds(CLOCK_PROCESS_CPUTIME_ID)},
            {"clean_end", last},
            {"verdict", to_text(work.verdict())},
            {"precisions", precisions},
            {"gpu_flops", work.gpu_flops},
            {"cpu_flops", work.cpu_flops},
            {"cpu_by_choice_flops", work.cpu_by_choice_flops},
            {"runs", totals_.runs},
            {"graph_launches", totals_.graph_launches},
            {"synchronizations", totals_.waits},
            {"copied_to_device_bytes", totals_.bytes_in},
            {"copied_to_host_bytes", totals_.bytes_out},
            {"crowded", totals_.crowded},
            {"programs", names},
            {"part_ns", totals_.part_ns},
            {"parts", std::vector<int64_t>(totals_.parts.begin(),
                                           totals_.parts.begin() + static_cast<std::ptrdiff_t>(
                                                                       std::min(used, kParts)))},
            {"rows", rows}};
  }

  /// At most a hundredth of the time goes into writing.
  void write_if_due() {
    const int64_t begun = nanoseconds(CLOCK_MONOTONIC);
    if (begun < due_) return;
    write(false);
    const int64_t now = nanoseconds(CLOCK_MONOTONIC);
    due_ = now + std::max(kSecond, 100 * (now - begun));
  }

  void write(bool last) {
    std::string text = document(last).dump(-1, ' ', false, Json::error_handler_t::replace);
    text.pop_back();  // the last bracket: the check sum comes before it
    char check[32];
    std::snprintf(check, sizeof(check), ",\"check\":\"%08x\"}\n",
                  recorder::crc32(text.data(), text.size()));
    text += check;
    const recorder::QuietSignals quiet;
    if (!listed_) {
      recorder::list_record(folder_.c_str(), host_, path_.c_str() + folder_.size() + 1, owner_);
      listed_ = true;
    }
    const std::string fresh = path_ + ".new";
    const int file =
        open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return;
    bool good = owner_ < 0 || fchown(file, static_cast<uid_t>(owner_), static_cast<gid_t>(-1)) == 0;
    for (size_t done = 0; good && done < text.size();) {
      const ssize_t n = ::write(file, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) continue;
      good = n > 0;
      done += good ? static_cast<size_t>(n) : 0;
    }
    close(file);
    if (!good || std::rename(fresh.c_str(), path_.c_str()) != 0) unlink(fresh.c_str());
  }

  void finish() {
    std::lock_guard<std::mutex> lock(mutex_);
    write(true);  // also where no operation was run: that is told, too
  }

  static OpRecords* instance_;
  std::mutex mutex_;
  const std::string folder_;
  std::string path_;
  bool listed_ = false;  ///< in the list of files
  char host_[128] = "";
  long owner_ = -1;  ///< of the folder, where that is another user's and this one is root
  Totals totals_;
  int64_t begun_ = 0, begun_real_ = 0, due_ = 0;
};

OpRecords* OpRecords::instance_ = nullptr;

[[maybe_unused]] OpRecords* const started = OpRecords::start();

}  // namespace
}  // namespace tracefire
