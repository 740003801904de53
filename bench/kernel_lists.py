# SPDX-License-Identifier: Apache-2.0
"""Holds the kernels that the executor says it launched against those that a profiler saw.

Every kernel of Tracefire carries its name, so counts must be equal, name by name. Products are
cuBLASLt's, which chooses the kernel itself: their sum must be equal. What a library launches beside
that is allowed only if a row of HELPERS explains it.
"""

PRODUCT = "cublasLtMatmul"  # how the executor names a call of the library
COPIES = ("memset", "memcpy")  # captured as nodes of their own, no kernels

# Part of a name, and why the library launches such a kernel.
HELPERS = {
    "splitKreduce_kernel": "cuBLASLt divides the inner dimension of a product with few rows and columns among "
    "blocks (split-K) and adds their parts up with this kernel",
}
# How product kernels are called, in CUTLASS, in cuBLAS's own collections and in nvjet.
PRODUCTS = ("gemm", "cutlass", "nvjet", "xmma", "gemv")


def named_kernels(profile):
    """{kernel: launches} that a profile of Tracefire (schema tracefire.profile/1) says ran on GPUs."""
    counts = {}
    for row in profile["operations"]:
        if "GPU" in row["device"]:
            for symbol in row["symbols"]:
                if symbol not in COPIES:
                    counts[symbol] = counts.get(symbol, 0) + row["runs"]
    return counts


def compare(named, seen):
    """Compares {kernel: launches} of the executor with that of a profiler.

    Returns:
        (problems, helpers): texts, none where the lists agree, and for each helper kernel its name,
        launches and reason.
    """
    problems, helpers, products = [], [], 0
    for name, count in sorted(seen.items()):
        if name in named:
            if named[name] != count:
                problems.append(f"{name}: the executor says {named[name]} launches, the profiler saw {count}")
            continue
        reason = next((text for part, text in HELPERS.items() if part in name), None)
        if reason is not None:
            helpers.append({"kernel": name, "launches": count, "reason": reason})
        elif any(part in name for part in PRODUCTS):
            products += count
        else:
            problems.append(f"{name}: the profiler saw {count} launches of which the executor says nothing")
    wanted = named.get(PRODUCT, 0)
    if products != wanted:
        problems.append(f"{PRODUCT}: the executor says {wanted} products, the profiler saw {products}")
    if sum(h["launches"] for h in helpers) > products:
        problems.append("there are more helper kernels than products that could have launched them")
    for name in sorted(set(named) - set(seen) - {PRODUCT}):
        problems.append(f"{name}: the executor says {named[name]} launches, the profiler saw none")
    return problems, helpers
