// SPDX-License-Identifier: Apache-2.0
//
// Which environment a Jupyter kernel runs, and whether another one was meant.
#include "tools/doctor/derive_request.h"
#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

struct Kernel {
  std::string file, name, program;
  const Surveyed* runs = nullptr;  ///< null where the interpreter is of no environment
};

/// Folders of kernels, each with the prefix whose Python a bare "python" in them is.
std::vector<std::pair<std::string, std::string>> kernel_folders(const Root& root, const Machine& m,
                                                                const std::vector<Surveyed>& all) {
  std::vector<std::pair<std::string, std::string>> out = {
      {"/usr/local/share/jupyter/kernels", "/usr"},
      {"/usr/share/jupyter/kernels", "/usr"},
      {"/root" + std::string("/.local/share/jupyter/kernels"), ""}};
  for (const std::string& user : root.list("/home", 256))
    out.push_back({"/home/" + user + "/.local/share/jupyter/kernels", ""});
  if (std::string home = m.variable("HOME"); !home.empty())
    out.push_back({normal_path(home) + "/.local/share/jupyter/kernels", ""});
  if (std::string data = m.variable("JUPYTER_DATA_DIR"); !data.empty())
    out.push_back({normal_path(data) + "/kernels", ""});
  for (std::string_view dir : split(m.variable("JUPYTER_PATH"), ':'))
    if (!dir.empty() && dir[0] == '/') out.push_back({normal_path(dir) + "/kernels", ""});
  for (const Surveyed& surveyed : all)
    out.push_back({surveyed.env.prefix + "/share/jupyter/kernels", surveyed.env.prefix});
  return out;
}

std::vector<Kernel> find_kernels(const Root& root, const Machine& m,
                                 const std::vector<Surveyed>& all) {
  std::vector<const Environment*> environments;
  for (const Surveyed& surveyed : all) environments.push_back(&surveyed.env);
  std::vector<Kernel> out;
  std::set<std::string> seen;
  for (const auto& [folder, prefix] : kernel_folders(root, m, all))
    for (const std::string& name : root.list(folder, 256)) {
      Kernel kernel{folder + "/" + name + "/kernel.json", name, "", nullptr};
      if (!seen.insert(kernel.file).second) continue;
      std::vector<std::string> argv =
          parse_kernel_argv(root.read(kernel.file, 64 << 10).value_or(""));
      if (argv.empty() || argv[0].empty()) continue;
      kernel.program = argv[0];
      if (kernel.program[0] != '/') {  // the Python that Jupyter itself runs in
        if (prefix.empty() || kernel.program.rfind("python", 0) != 0) continue;
        kernel.program = prefix + "/bin/" + kernel.program;
      }
      const Environment* env = environment_of_interpreter(root, environments, kernel.program);
      for (size_t i = 0; i < all.size(); ++i)
        if (env == environments[i]) kernel.runs = &all[i];
      out.push_back(std::move(kernel));
    }
  return out;
}

/// 0 without the framework, 1 with a build that has no CUDA, 2 with another.
int grade_of(const Surveyed* surveyed, const std::string& id) {
  if (surveyed == nullptr) return 0;
  for (const Framework& framework : surveyed->frameworks)
    if (framework.id == id) return framework.build == Build::kCpu ? 1 : 2;
  return 0;
}

const Surveyed* best_with(const std::vector<Surveyed>& all, const std::string& id) {
  const Surveyed* best = nullptr;
  for (const Surveyed& surveyed : all) {
    if (grade_of(&surveyed, id) == 0 || (!surveyed.env.stray.empty() && !surveyed.env.active))
      continue;
    const int more = best == nullptr ? 1 : grade_of(&surveyed, id) - grade_of(best, id);
    if (more > 0 || (more == 0 && surveyed.env.active && !best->env.active)) best = &surveyed;
  }
  return best;
}

}  // namespace

void kernel_facts(const Root& root, const Machine& m, const std::vector<Surveyed>& all, Facts* f) {
  const std::vector<Kernel> kernels = find_kernels(root, m, all);
  for (std::string id : {"tensorflow", "torch", "jax"}) {
    const Surveyed* best = best_with(all, id);
    if (best == nullptr || f->has("kernel.wrong")) continue;
    const int wanted = grade_of(best, id);
    const Kernel *wrong = nullptr, *right = nullptr;
    for (const Kernel& kernel : kernels) {
      const int grade = grade_of(kernel.runs, id);
      // It may be there for another framework.
      const bool other = grade == 0 && kernel.runs != nullptr && !kernel.runs->frameworks.empty();
      const bool lacks_cuda = grade == 1 && m.gpu != Presence::kAbsent;
      if (grade >= wanted)
        right = &kernel;
      else if ((grade == 0 || lacks_cuda) && !other && wrong == nullptr)
        wrong = &kernel;
    }
    // Where a kernel of the right environment is there, a program in the other may be meant.
    if (wrong == nullptr || (right != nullptr && f->get("log.no_module") != id)) continue;
    f->set("kernel.wrong", "yes", wrong->file + " starts " + wrong->program + ".");
    f->set("kernel.name", wrong->name);
    f->set("kernel.python", wrong->program);
    f->set("kernel.framework", id);
    f->set("kernel.product", product_of(id));
    f->set("kernel.has", best->env.prefix);
    f->set("kernel.right", best->env.interpreter);
    if (right != nullptr) f->set("kernel.choose", right->name);
    if (grade_of(wrong->runs, id) == 1) {
      f->set("kernel.cpu", wrong->runs->env.prefix);
      for (const Framework& framework : wrong->runs->frameworks)
        if (framework.id == id)
          f->set("kernel.cpu_build", framework.version, framework.build_proof);
    }
  }
}

}  // namespace tracefire::doctor
