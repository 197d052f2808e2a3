/*
 * topolet's plugin ABI, version 0.9: a draft of 1.0. Pure C11; also compiles as C++11 and later. For 64-bit machines.
 *
 * A plugin is a shared object NAME.so that exports exactly one symbol, the constant topolet_plugin_v1. The host reads
 * its option table, creates an instance, and asks that instance for its capabilities by string id (score.h, pick.h,
 * adjust.h, propose.h, events.h, tick.h, annotations.h, reads.h, codes.h). The plugin asks the host for capabilities in
 * the same way (log.h, state.h, wake.h).
 *
 * Rules that hold for every function and struct of this ABI:
 *
 *  - Growth. A struct that may grow begins with struct_size, set by whoever allocated and filled it. A reader tests
 *    with TOPOLET_HAS before it touches a field that came after the first release. Fields are only ever appended.
 *    Arrays of structs that may grow have no struct_size in their elements but a stride; step with TOPOLET_AT, test
 *    with TOPOLET_STRIDE_HAS. Sizes and strides are multiples of 8 and at most TOPOLET_STRUCT_MAX; arrays of structs
 *    begin at multiples of 8. The views topolet_str, topolet_kv, topolet_set and the lists of them never change.
 *    A host also loads plugins whose abi_minor is higher than its own: these use what came later only where the host
 *    has it.
 *  - Bounds. In a plugin's tables, which are its entry, its options and its capability structs, a list or array has
 *    at most TOPOLET_TABLE_MAX elements and a string at most TOPOLET_TEXT_MAX bytes. A set that a plugin passes has at
 *    most TOPOLET_SET_MAX words; words that are 0 may follow the last index.
 *  - Reserved. Whoever writes a struct writes 0 into its `reserved` fields, and the host refuses anything else. Nobody
 *    reads them.
 *  - Ownership. What one side passes in is borrowed for the call; setters copy. Nothing is ever freed across the
 *    boundary. The entry lives until exit; the instance and the plugin's capability structs live until destroy() has
 *    returned; the host, its capability structs and its sinks live until exit. Everything else ends with the call it
 *    was passed to, unless its comment says otherwise. What the host passes in is const with all that it points to, and
 *    may lie in memory that cannot be written: a plugin that writes there loses its vote or crashes; see ABI.md.
 *  - Threads. Each function carries a tag:
 *      [control]     one of the host's control threads.
 *      [decision]    the policy thread, on the way of a container's creation. The host abandons slow calls
 *                    (deadline-ms): do not block and do no I/O.
 *      [event]       the policy thread too, but between decisions. The same deadline holds.
 *      [any-thread]  any thread of the process.
 *    Calls into one instance come one after the other, whatever their tags; the thread may be another one each time. A
 *    plugin may have threads of its own, which destroy() stops and joins. They may call the host's [any-thread]
 *    functions. A function of a sink belongs to the thread of the call that the sink was passed to; on any other
 *    thread, and after the call, it does nothing and returns TOPOLET_LATE. So does every function of the host after
 *    destroy().
 *  - Lives. More than one instance of a plugin may exist at a time: at a reload the new one is created before the old
 *    one is destroyed. Their calls do not overlap.
 *  - Purity. A [decision] function gives the same answer for the same request and the same saved state, in any process.
 *    It must not use a clock or random numbers.
 *  - Errors. Functions that can fail return one of topolet_status. Those of a plugin return TOPOLET_OK,
 *    TOPOLET_FAILED or TOPOLET_THREW, in every minor; those of the host may return one that is newer than the plugin,
 *    which is a failure. No exception may cross the boundary.
 *  - Values. An enumeration or set of flags that the host writes may get new members in later minors, but a plugin
 *    never sees one that is newer than its abi_minor: its comment says what is shown instead; flags are left out. A
 *    value, or a flag, that a plugin passes to a function and the host does not know gets TOPOLET_UNSUPPORTED: nothing
 *    is set, and it is no fault. A field that is said to be 0 or 1 never has another value.
 *  - Numbers. A name that ends in _bytes, _ms or _milli says the unit: bytes, milliseconds, thousandths of a CPU.
 *    Amounts are never negative.
 *  - Strings are UTF-8 by convention only, and not zero-terminated. Lists of pairs that the host writes are in the
 *    order of the bytes of their keys, each key once, and lists of strings in the order of their bytes, each once,
 *    unless their comments say otherwise.
 *  - Sets name CPUs (PUs) and NUMA nodes by the operating system's index, sparse as the machine numbers them. Those
 *    that the host writes have no trailing words that are 0: equal sets have equal words.
 *  - Capability ids that begin with "topolet." are defined here. Others use a domain name that their author owns,
 *    backwards ("org.example.power/1"); a trial ends in "/draft-N". A capability "/1" is served as long as the major
 *    version lives.
 */
#ifndef TOPOLET_ABI_H
#define TOPOLET_ABI_H

#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX != 0xffffffffffffffffu
#error "topolet's plugin ABI is for 64-bit machines"
#endif

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ABI 0.9. The major version is part of the entry's symbol name; minors only append. */
#define TOPOLET_ABI_MINOR 0u

/*
 * Counts the breaking changes before 1.0, each with a line in ABI.md. A host loads plugins of its own draft only.
 * From 1.0 on it is 0 and means: every 1.x host loads every 1.y plugin.
 */
#define TOPOLET_ABI_DRAFT 3u

/* The name of the one exported symbol. */
#define TOPOLET_ENTRY_SYMBOL "topolet_plugin_v1"

#if defined(__GNUC__)
#define TOPOLET_EXPORT __attribute__((visibility("default")))
#else
#define TOPOLET_EXPORT
#endif

/* The most that a struct_size or a stride may be, in bytes. */
#define TOPOLET_STRUCT_MAX 4096u

/* The most elements that a list or array in a plugin's tables may have, and the most bytes of a string there. */
#define TOPOLET_TABLE_MAX 1024u
#define TOPOLET_TEXT_MAX 65536u

/* The most words that a set of a plugin may have: the highest index is 65,535. */
#define TOPOLET_SET_MAX 1024u

/* True if `ptr->field` was there when the writer of `*ptr` was compiled. `ptr` is evaluated more than once. */
#define TOPOLET_HAS(ptr, field) \
  ((size_t)((const char*)&(ptr)->field - (const char*)(ptr)) + sizeof((ptr)->field) <= (size_t)(ptr)->struct_size)

/* The same for the elements of an array with this stride. */
#define TOPOLET_STRIDE_HAS(stride, type, field) \
  (offsetof(type, field) + sizeof(((const type*)0)->field) <= (size_t)(stride))

/* Pointer to element `i` of an array of `type` whose elements lie `stride` bytes apart. */
#define TOPOLET_AT(type, items, stride, i) \
  ((const type*)(const void*)((const char*)(items) + (size_t)(stride) * (size_t)(i)))

/* A position (into an array of the topology) that stands for "none". */
#define TOPOLET_NONE UINT32_MAX

/* ---- Frozen views --------------------------------------------------------------------------------------------- */

/* `len` bytes at `ptr`. Not zero-terminated. `ptr` may be null if `len` is 0. */
typedef struct topolet_str {
  const char* ptr;
  size_t len;
} topolet_str;

/* Initialiser of a topolet_str from a string literal. */
#define TOPOLET_STR(literal) \
  { literal, sizeof(literal) - 1 }

typedef struct topolet_strs {
  const topolet_str* items;
  size_t count;
} topolet_strs;

typedef struct topolet_kv {
  topolet_str key;
  topolet_str value;
} topolet_kv;

typedef struct topolet_kvs {
  const topolet_kv* items;
  size_t count;
} topolet_kvs;

/* A set of OS indices: index i is in it if bit i % 64 of words[i / 64] is set. `count` is the number of words; `words`
 * may be null if it is 0. Indices beyond the last word are not in the set. */
typedef struct topolet_set {
  const uint64_t* words;
  size_t count;
} topolet_set;

/* ---- Status ---------------------------------------------------------------------------------------------------- */

typedef enum topolet_status {
  TOPOLET_OK = 0,
  TOPOLET_FAILED = 1,       /* it could not be done; of a plugin's function: the sink, if there is one, was told why */
  TOPOLET_INVALID = 2,      /* an argument is malformed, such as a null pointer with a length */
  TOPOLET_OUT_OF_RANGE = 3, /* a number or length is outside its bounds, or a set has too many words */
  TOPOLET_UNKNOWN = 4,      /* there is no such candidate, entry, device or key */
  TOPOLET_DUPLICATE = 5,    /* the same was set before in this call */
  TOPOLET_LATE = 6,         /* the call, its thread's turn or the instance's life is over: return as soon as possible */
  TOPOLET_THREW = 7,        /* the plugin's own barrier caught an exception; counts as misbehaviour */
  TOPOLET_FORBIDDEN = 8,    /* not allowed in this call, such as writing state in score() */
  TOPOLET_UNSUPPORTED = 9   /* a value that the host does not know: nothing is set, and it is no fault */
} topolet_status;

/* ---- Topology --------------------------------------------------------------------------------------------------- */

/* One online logical CPU. The others are positions in the arrays of topolet_topology, or TOPOLET_NONE. */
typedef struct topolet_pu {
  uint32_t os_index;
  uint32_t core;
  uint32_t l3;
  uint32_t die;
  uint32_t node; /* TOPOLET_NONE where no NUMA node covers the CPU */
  uint32_t package;
} topolet_pu;

typedef struct topolet_huge_pages {
  int64_t page_bytes;
  int64_t count; /* that the node has, used or not, when the topology was read; 1 or more */
} topolet_huge_pages;

typedef struct topolet_node {
  uint32_t os_index;
  uint32_t memory_only;                 /* 1: HBM, CXL, PMEM or a node without CPUs */
  topolet_set cpus;                     /* local CPUs; of a memory-only node those of its DRAM node, or none */
  topolet_str subtype;                  /* hwloc's, such as "HBM"; often empty */
  int64_t memory_bytes;                 /* huge pages included; 0 = unknown */
  const topolet_huge_pages* huge_pages; /* by ascending page_bytes */
  uint32_t huge_pages_count;
  uint32_t huge_pages_stride;
} topolet_node;

/* A later kind is shown as TOPOLET_DOMAIN_MACHINE. */
typedef enum topolet_domain_kind {
  TOPOLET_DOMAIN_NODE = 0,
  TOPOLET_DOMAIN_DIE = 1,
  TOPOLET_DOMAIN_PACKAGE = 2,
  TOPOLET_DOMAIN_MACHINE = 3
} topolet_domain_kind;

/* A piece of the machine that hwloc knows as one object. */
typedef struct topolet_domain {
  int32_t kind; /* topolet_domain_kind */
  uint32_t reserved;
  topolet_set cpus;
  topolet_set nodes; /* CPU nodes */
} topolet_domain;

/* Online CPUs of the same kind. A machine whose CPUs are all alike has one kind, or none. */
typedef struct topolet_cpu_kind {
  uint32_t efficiency; /* rank: the higher, the faster and the less frugal; TOPOLET_NONE = unknown */
  uint32_t reserved;
  topolet_set cpus;
} topolet_cpu_kind;

/* A later kind is shown as TOPOLET_CACHE_UNIFIED. */
typedef enum topolet_cache_kind {
  TOPOLET_CACHE_UNIFIED = 0,
  TOPOLET_CACHE_DATA = 1,
  TOPOLET_CACHE_INSTRUCTION = 2
} topolet_cache_kind;

typedef struct topolet_cache {
  uint32_t level; /* 1 to 5 */
  int32_t kind;   /* topolet_cache_kind */
  int64_t bytes;  /* 0 = unknown */
  topolet_set cpus;
} topolet_cache;

/* A bridge of the PCI tree: a host bridge, from where a tree starts, a root port, or a port of a switch. Two devices
 * are as close as the lowest bridge above both: below a host bridge they share a switch, at it a root; those of
 * different host bridges are compared by `nodes`, then by the packages of `cpus`. */
typedef struct topolet_pci_bridge {
  topolet_str address; /* "0000:64:00.0"; empty for a host bridge */
  uint32_t parent;     /* position of the bridge above; a smaller one. TOPOLET_NONE for a host bridge */
  uint32_t vendor_id;  /* 0 for a host bridge */
  uint32_t device_id;
  uint32_t reserved;
  topolet_set cpus;  /* online CPUs local to it */
  topolet_set nodes; /* NUMA nodes local to it, memory-only ones included */
} topolet_pci_bridge;

/* A PCI device. Which ones are shown is the host's choice: those that hold OS devices and those of the classes that
 * workloads use. */
typedef struct topolet_pci_device {
  topolet_str address; /* "0000:65:00.0": domain:bus:device.function */
  uint32_t bridge;     /* position in pci_bridges of the one above it, or TOPOLET_NONE */
  uint32_t class_id;   /* class and subclass, such as 0x0302 for a 3D controller */
  uint32_t vendor_id;
  uint32_t device_id;
  topolet_set cpus;  /* as for bridges */
  topolet_set nodes; /* as for bridges */
  topolet_kvs info;  /* hwloc's, such as PCIVendor */
} topolet_pci_device;

/* A later kind is shown as TOPOLET_OS_DEVICE_OTHER. */
typedef enum topolet_os_device_kind {
  TOPOLET_OS_DEVICE_BLOCK = 0,       /* nvme0n1 */
  TOPOLET_OS_DEVICE_GPU = 1,         /* card0 */
  TOPOLET_OS_DEVICE_NETWORK = 2,     /* eth0 */
  TOPOLET_OS_DEVICE_OPENFABRICS = 3, /* mlx5_0 */
  TOPOLET_OS_DEVICE_DMA = 4,         /* dma0chan0 */
  TOPOLET_OS_DEVICE_COPROCESSOR = 5, /* cuda0, nvml0, opencl0d0 */
  TOPOLET_OS_DEVICE_OTHER = 6
} topolet_os_device_kind;

/* A device by the name that the operating system or its vendor's library gives it. One piece of hardware may have
 * several: they share `pci_device`. */
typedef struct topolet_os_device {
  topolet_str name;
  topolet_str subtype; /* hwloc's, such as "NVML"; often empty */
  int32_t kind;        /* topolet_os_device_kind */
  uint32_t pci_device; /* position in pci_devices, or TOPOLET_NONE */
  topolet_set cpus;    /* as for bridges */
  topolet_set nodes;   /* as for bridges */
  topolet_kvs info;    /* hwloc's, such as NVIDIAUUID */
} topolet_os_device;

/* The machine. */
typedef struct topolet_topology {
  uint32_t struct_size;
  uint32_t distances_known; /* 0: the machine names none; `distances` is 10 on the diagonal, 20 elsewhere */
  uint64_t generation;      /* grows when the machine changes (CPUs on- or offline), as long as the host lives */

  const topolet_pu* pus; /* online CPUs by ascending os_index */
  uint32_t pu_count;
  uint32_t pu_stride;
  const topolet_node* nodes; /* by ascending os_index */
  uint32_t node_count;
  uint32_t node_stride;
  /* Nodes by ascending os_index, then dies and packages by their lowest CPU, then the machine; without those that have
   * the nodes of an earlier one. CPUs outside any node are one more, the first, without nodes. */
  const topolet_domain* domains;
  uint32_t domain_count;
  uint32_t domain_stride;

  const topolet_set* cores; /* CPUs of each core; this list and the next three by ascending lowest CPU */
  size_t core_count;
  const topolet_set* l3s; /* CPUs that share a last-level cache; none where there is no such cache */
  size_t l3_count;
  const topolet_set* dies;
  size_t die_count;
  const topolet_set* packages;
  size_t package_count;

  /* SLIT: node_count rows of node_count, by position in `nodes`, from the row's node to the column's; null without
   * nodes. */
  const uint32_t* distances;

  topolet_set online;
  topolet_set allowed;  /* online CPUs that the machine lets processes use; topolet's are in the ledger's `allowed` */
  topolet_set isolated; /* online CPUs of the kernel's isolcpus */

  const topolet_cpu_kind* cpu_kinds; /* by ascending efficiency, unknown ones last */
  uint32_t cpu_kind_count;
  uint32_t cpu_kind_stride;
  const topolet_cache* caches; /* the largest level first, then by lowest CPU, then by kind; the `l3s` are among them */
  uint32_t cache_count;
  uint32_t cache_stride;
  const topolet_pci_bridge* pci_bridges; /* each one after the bridge above it */
  uint32_t pci_bridge_count;
  uint32_t pci_bridge_stride;
  const topolet_pci_device* pci_devices; /* by ascending address */
  uint32_t pci_device_count;
  uint32_t pci_device_stride;
  const topolet_os_device* os_devices; /* by ascending name */
  uint32_t os_device_count;
  uint32_t os_device_stride;
} topolet_topology;

/* ---- Workload ---------------------------------------------------------------------------------------------------- */

/* A later class is shown as TOPOLET_QOS_BESTEFFORT, and the class of a container that was found and of which nobody
 * tells it as TOPOLET_QOS_BURSTABLE. */
typedef enum topolet_qos {
  TOPOLET_QOS_GUARANTEED = 0,
  TOPOLET_QOS_BURSTABLE = 1,
  TOPOLET_QOS_BESTEFFORT = 2
} topolet_qos;

/* How sure an amount is. A later one is shown as TOPOLET_CERTAINTY_UNKNOWN. */
typedef enum topolet_certainty {
  TOPOLET_CERTAINTY_TOLD = 0,      /* as it was asked for */
  TOPOLET_CERTAINTY_ESTIMATED = 1, /* at most so much: what the kernel shows is rounded */
  TOPOLET_CERTAINTY_UNKNOWN = 2,   /* nobody tells: the amount is what the host counts for it */
  TOPOLET_CERTAINTY_OF_POD = 3     /* it requests none of its own: what its pod requests beyond its other containers */
} topolet_certainty;

typedef struct topolet_huge_page_limit {
  topolet_str page_size; /* as the CRI writes it, such as "2MB"; each once */
  int64_t bytes;
} topolet_huge_page_limit;

typedef struct topolet_demand {
  uint32_t struct_size;
  uint32_t memory_request_estimated; /* 1: told from oom_score_adj, in steps of 0.1 % of the machine's memory */
  int64_t cpu_request_milli;         /* thousandths of a CPU; 0 = none */
  int64_t cpu_limit_milli;           /* 0 = unlimited */
  int64_t memory_request_bytes;      /* 0 = none or unknown */
  int64_t memory_limit_bytes;        /* 0 = unlimited */
  const topolet_huge_page_limit* huge_page_limits; /* in the order of the bytes of page_size */
  uint32_t huge_page_limit_count;
  uint32_t huge_page_limit_stride;
  int32_t cpu_request_certainty; /* topolet_certainty */
  uint32_t reserved;
} topolet_demand;

/* One container that is to be placed. */
typedef struct topolet_workload {
  uint32_t struct_size;
  uint32_t attempt;    /* 0 at first, and one more for each restart of the container */
  topolet_str pod_uid; /* pods that were made by hand may share one: sandbox_id tells them apart */
  topolet_str pod_name;
  topolet_str pod_namespace;
  topolet_str sandbox_id;
  topolet_str container_name;
  topolet_str runtime_handler; /* empty for the runtime's default */
  int32_t qos;                 /* topolet_qos */
  uint32_t reserved;
  const topolet_demand* demand;
  topolet_set kubelet_cpus; /* a bound the kubelet set; empty = none */
  topolet_set kubelet_mems; /* the same for memory nodes */
  topolet_strs devices;     /* host paths, in the order of the request */
  topolet_strs cdi_devices; /* fully qualified names, in the order of the request */
  topolet_kvs env;          /* values are secrets: never log them, keep them or put them into a reason */
  topolet_kvs pod_labels;
  topolet_kvs pod_annotations;
  topolet_kvs annotations; /* the container's own */
  /* What its pod says to topolet: the topolet.io/ annotations that the configuration permits, without that prefix, the
   * container's own word before the pod's. */
  topolet_kvs settings;
  const topolet_demand* pod_demand; /* of the whole pod; null if unknown */
  topolet_set pod_nodes;            /* of the candidate that the pod's first container was given; empty for the first */
  topolet_strs used_devices;        /* as in its ledger entry; empty when this attempt is placed for the first time */
  topolet_kvs tags;                 /* the same */
  topolet_str container_id;         /* the runtime's; empty until the runtime has created it */
} topolet_workload;

/* ---- Ledger ------------------------------------------------------------------------------------------------------ */

/* A later mode is shown as TOPOLET_MODE_FOREIGN. */
typedef enum topolet_mode {
  TOPOLET_MODE_EXCLUSIVE = 0, /* CPUs of its own */
  TOPOLET_MODE_SHARED = 1,    /* in the pool */
  TOPOLET_MODE_RESERVED = 2,  /* in the pool and on the reserved CPUs */
  TOPOLET_MODE_FOREIGN = 3    /* seen but not placed; its CPUs are recorded */
} topolet_mode;

#define TOPOLET_ENTRY_PENDING 1u /* its create was passed on, and the runtime has not answered yet */
#define TOPOLET_ENTRY_STARTED 2u /* it runs, or has run */
#define TOPOLET_ENTRY_ADOPTED 4u /* it was found; topolet did not see its creation */

/* One container that is placed, or about to be: those whose create the runtime has not answered yet are in the ledger,
 * so that a policy that counts others does not miss one of the same moment. */
typedef struct topolet_ledger_entry {
  topolet_str pod_uid;
  topolet_str container_name;
  uint32_t attempt;
  int32_t qos;          /* topolet_qos, with what is said there */
  int32_t mode;         /* topolet_mode */
  uint32_t flags;       /* TOPOLET_ENTRY_… */
  topolet_set cpus;     /* that it may run on */
  topolet_set withheld; /* kept idle for it */
  topolet_set mems;     /* memory nodes that it is bound to; empty: not bound */
  const topolet_demand* demand;
  topolet_kvs settings;      /* as in topolet_workload */
  topolet_strs used_devices; /* what plugins said that it uses, in that order: see topolet_adjust_sink */
  topolet_str pod_name;
  topolet_str pod_namespace;
  topolet_str sandbox_id;
  topolet_str container_id; /* the runtime's; empty while it is pending */
  topolet_str runtime_handler;
  topolet_kvs pod_labels;
  topolet_kvs pod_annotations;
  topolet_kvs annotations;
  topolet_kvs tags;     /* what plugins noted, by "ID/KEY": see topolet_adjust_sink */
  topolet_strs devices; /* as in topolet_workload, as are the next */
  topolet_strs cdi_devices;
} topolet_ledger_entry;

/* What the containers on one node request. A container on CPUs of several nodes counts on each of them: its CPU request
 * is divided as its CPUs are, its memory equally among its `mems`, or without these as its CPUs are. CPUs outside any
 * node take their part of the CPU request, none of the memory. */
typedef struct topolet_node_demand {
  uint32_t containers;
  uint32_t exclusive_cpus; /* held by one container each, foreign ones included */
  int64_t cpu_request_milli;
  int64_t memory_request_bytes; /* of those whose request is known */
} topolet_node_demand;

/* Which container has which CPUs, at the time of the decision. The container that is being placed is not in it, nor is
 * what it has or had, whether it is created, resized, moved or repaired: see topolet_request.had_cpus. */
typedef struct topolet_ledger {
  uint32_t struct_size;
  uint32_t reserved;
  /* Grows with the changes that have been carried out. As decisions also try what is not, two requests may show
   * different ledgers of one generation. */
  uint64_t generation;
  topolet_set allowed;                 /* CPUs topolet may use at all, reserved ones included */
  topolet_set reserved_cpus;           /* the system's: never in the pool, never exclusive */
  topolet_set pool;                    /* shared CPUs: allowed, and not reserved, held, withheld or isolated */
  topolet_set exclusive;               /* held by one container each */
  topolet_set withheld;                /* kept idle for containers */
  const topolet_ledger_entry* entries; /* by pod_uid, container_name, attempt and sandbox_id */
  uint32_t entry_count;
  uint32_t entry_stride;
  const topolet_node_demand* node_demands; /* one for each node of the topology, by position in `nodes` */
  uint32_t node_demand_count;
  uint32_t node_demand_stride;
} topolet_ledger;

/* ---- Request ----------------------------------------------------------------------------------------------------- */

/* Why a decision is made. A later occasion is shown as TOPOLET_OCCASION_MOVE. */
typedef enum topolet_occasion {
  TOPOLET_OCCASION_CREATE = 0,  /* a container is created for the first time */
  TOPOLET_OCCASION_RESTART = 1, /* it is created again after it ended: the next attempt */
  TOPOLET_OCCASION_RESIZE = 2,  /* what it requests has changed */
  TOPOLET_OCCASION_MOVE = 3,    /* it could be better off elsewhere: a plugin's wish, or the host's own */
  TOPOLET_OCCASION_REPAIR = 4,  /* it cannot stay as it is: the machine or its neighbours have changed */
  TOPOLET_OCCASION_ADOPT = 5    /* it was found running */
} topolet_occasion;

/* Where the CPUs of an exclusive container come from. A later source is shown as TOPOLET_CPUS_FROM_POOL. */
typedef enum topolet_cpu_source {
  TOPOLET_CPUS_FROM_POOL = 0,
  TOPOLET_CPUS_PREFER_ISOLATED = 1, /* isolated CPUs if they fit, else the pool */
  TOPOLET_CPUS_FROM_ISOLATED = 2    /* isolated CPUs or none */
} topolet_cpu_source;

/* Why a container gets no CPUs of its own. A later reason is shown as TOPOLET_SHARED_OTHER. */
typedef enum topolet_why_shared {
  TOPOLET_SHARED_NOT = 0, /* it does get them */
  TOPOLET_SHARED_OTHER = 1,
  TOPOLET_SHARED_ANNOTATED_NONE = 2,      /* topolet.io/cpus = none */
  TOPOLET_SHARED_ANNOTATED_SHARED = 3,    /* topolet.io/cpus = shared */
  TOPOLET_SHARED_BURSTABLE = 4,           /* neither Guaranteed nor annotated */
  TOPOLET_SHARED_BESTEFFORT = 5,          /* the same */
  TOPOLET_SHARED_UNKNOWN_DEMAND = 6,      /* it was found, and nobody tells exactly what it requests */
  TOPOLET_SHARED_FRACTIONAL_REQUEST = 7,  /* Guaranteed, but not for whole CPUs */
  TOPOLET_SHARED_NO_REQUEST = 8,          /* annotated, but it requests no CPU */
  TOPOLET_SHARED_UNKNOWN_REQUEST = 9,     /* for 256 CPUs or more, and without a limit */
  TOPOLET_SHARED_NOTHING_REQUESTED = 10,  /* Burstable by its memory */
  TOPOLET_SHARED_NO_OWN_REQUEST = 11,     /* its pod has one */
  TOPOLET_SHARED_ONLY_WHOLE_CPUS = 12,    /* annotated, but it may not have more than it requests */
  TOPOLET_SHARED_RESERVED_NAMESPACE = 13, /* and not annotated */
  TOPOLET_SHARED_RULE_NEVER = 14,         /* placement.exclusive = never */
  TOPOLET_SHARED_RULE_ANNOTATED = 15,     /* placement.exclusive = annotated, and it is not */
  TOPOLET_SHARED_KUBELET_HANDS_OUT_CPUS = 16,
  TOPOLET_SHARED_ONLY_AT_CREATION = 17, /* it is being placed anew */
  TOPOLET_SHARED_NODE_FULL = 18         /* placement.when-full = share */
} topolet_why_shared;

/* A node set the workload could be placed on. */
typedef struct topolet_candidate {
  int32_t kind;       /* topolet_domain_kind of the smallest domain with these nodes, else TOPOLET_DOMAIN_MACHINE */
  uint32_t is_domain; /* 0: a combination of nodes that is not a domain */
  topolet_set nodes;  /* CPU nodes; empty for CPUs outside any node */
  topolet_set cpus;   /* allowed CPUs, free or not */
  /* Those of `cpus` in the pool, which exclusive CPUs are taken from and shared containers run on; of a container that
   * may use the reserved CPUs (placement.reserved-namespaces) also those of them that nobody holds. */
  topolet_set pool;
  /* Those of `cpus` that this container may be given, which is what pick() is offered: of an exclusive container free
   * CPUs of its `cpu_source`, and if it does not grow only those that it had; of a shared one `pool`, or its `keep`. */
  topolet_set usable;
  uint32_t distance; /* sum of SLIT distances over all ordered pairs of its nodes, itself included; 10 without nodes */
  uint32_t reserved;
} topolet_candidate;

/* Flags of a request. */
#define TOPOLET_REQUEST_MUST_KEEP 1u     /* it gets all of `keep`, or all its CPUs of it, or is denied */
#define TOPOLET_REQUEST_STAYS 2u         /* it runs and must be somewhere: a rejection only counts against a place */
#define TOPOLET_REQUEST_PARTIAL 4u       /* `candidates` are some of those that there are */
#define TOPOLET_REQUEST_WHOLE_CORES 8u   /* exclusive CPUs are handed out as whole cores (numa.full-pcpus-only) */
#define TOPOLET_REQUEST_KUBELET_CPUS 16u /* the kubelet hands out CPUs: nothing is exclusive */
#define TOPOLET_REQUEST_POD_SCOPE 32u    /* a pod's containers share the nodes of its first one (numa.scope) */
#define TOPOLET_REQUEST_SPREAD_CORES                                              \
  64u /* exclusive CPUs are spread over cores (numa.distribute-cpus-across-cores) \
       */

/* What the CPUs of a NUMA node can do. */
typedef struct topolet_node_load {
  int64_t
      effective_milli; /* thousandths of a CPU, of all together: less where a hypervisor takes time; -1: not known */
  int64_t age_ms;      /* since it was measured; -1 where neither is known */
  int64_t used_milli;  /* thousandths of a CPU, used by whomever, the system included; -1: not known */
} topolet_node_load;

/* What one CPU can do. */
typedef struct topolet_pu_load {
  int64_t effective_milli; /* as in topolet_node_load */
  int64_t age_ms;
} topolet_pu_load;

/* What one container uses. */
typedef struct topolet_entry_load {
  int64_t cpu_milli;         /* CPU time, in thousandths of a CPU; -1: not known */
  int64_t age_ms;            /* since it was measured; -1 where it is not known */
  int32_t psi_some_permille; /* of the time, in which a task of it could have run and had no CPU; -1: not known, or its
                                own CFS quota held it back, which the kernel counts as well */
  uint32_t reserved;
} topolet_entry_load;

/* Measured load, as it was when the request was made. What is not known is not zero. */
typedef struct topolet_load {
  uint32_t struct_size;
  uint32_t reserved;
  const topolet_node_load* nodes;    /* as many as topology->nodes, in their order; null: nothing is known of any */
  const topolet_pu_load* pus;        /* the same of topology->pus */
  const topolet_entry_load* entries; /* the same of ledger->entries */
  uint32_t node_stride;
  uint32_t pu_stride;
  uint32_t entry_stride;
  uint32_t reserved_2;
  int64_t measured_ms; /* for how long it has been measured without a break; -1: not known */
} topolet_load;

/* One decision: what is to be placed, where it could go, and the machine and the ledger at that moment. An immutable
 * snapshot, borrowed for the call. */
typedef struct topolet_request {
  uint32_t struct_size;
  uint32_t exclusive;       /* 1: the container is to get exclusive CPUs */
  uint32_t exclusive_cpus;  /* how many; 0 unless `exclusive` */
  uint32_t candidate_count; /* 1 or more */
  /* Single nodes and domains, then combinations of nodes, in an order that depends on the machine alone, then those
   * that plugins proposed; the machine is the last, unless it is left out (TOPOLET_REQUEST_PARTIAL). The next request
   * of the same decision may have others. */
  const topolet_candidate* candidates;
  uint32_t candidate_stride;
  int32_t occasion; /* topolet_occasion */
  const topolet_workload* workload;
  const topolet_topology* topology;
  const topolet_ledger* ledger;
  int32_t mode;       /* topolet_mode that the container will have */
  uint32_t flags;     /* TOPOLET_REQUEST_… */
  int32_t cpu_source; /* topolet_cpu_source */
  int32_t why_shared; /* topolet_why_shared */
  /* What it has, or had in its last attempt, as far as that is known; empty for TOPOLET_OCCASION_CREATE. Of one that
   * goes back to CPUs that it was given before, these as well. */
  topolet_set had_cpus;
  topolet_set had_withheld; /* the same */
  topolet_set had_mems;     /* the same */
  topolet_set keep;         /* of had_cpus: goes before what policies choose */
  uint32_t min_shared_cpus; /* so many CPUs stay in the pool (placement.min-shared-cpus) */
  /* The CPUs of the largest exclusive container that was placed here in the last 24 hours, wherever it is by now: with
   * those kept idle for it, without isolated ones. 0: there was none, or it is not known. */
  uint32_t largest_exclusive_cpus;
  const topolet_load* load; /* null: nothing is measured */
} topolet_request;

/* ---- Options ----------------------------------------------------------------------------------------------------- */

/* A type that the host does not know counts as TOPOLET_OPTION_STRING. */
typedef enum topolet_option_type {
  TOPOLET_OPTION_STRING = 0,
  TOPOLET_OPTION_BOOL = 1,     /* "true" or "false" */
  TOPOLET_OPTION_INTEGER = 2,  /* decimal, within minimum…maximum */
  TOPOLET_OPTION_CHOICE = 3,   /* one of `allowed` */
  TOPOLET_OPTION_FLOAT = 4,    /* decimal, such as "0.5", within minimum…maximum */
  TOPOLET_OPTION_DURATION = 5, /* written as "250ms", "5s", "10m"; the plugin is given milliseconds, decimal */
  TOPOLET_OPTION_SIZE = 6,     /* written as "64Mi", "2Gi"; the plugin is given bytes, decimal */
  TOPOLET_OPTION_LIST = 7,     /* items of `allowed`, or any if that is empty, separated by commas; the plugin is given
                                  them without the spaces around */
  TOPOLET_OPTION_CPULIST = 8   /* "0-3,8"; the plugin is given the shortest form, in ascending order */
} topolet_option_type;

#define TOPOLET_OPTION_REPEATED                                                                                      \
  1u                               /* may be given several times; the plugin is given a pair for each, in that order \
                                    */
#define TOPOLET_OPTION_REQUIRED 2u /* has no default: a configuration without it is refused */
#define TOPOLET_OPTION_SECRET 4u   /* its value is shown nowhere, and to no other plugin */

/* One option of the plugin. The host derives the config section, the flag, --help and "did you mean" from it. */
typedef struct topolet_option {
  topolet_str name;          /* lower-case letters, digits and '-', a letter first, 64 at most, such as "keep-free" */
  int32_t type;              /* topolet_option_type */
  uint32_t flags;            /* TOPOLET_OPTION_REPEATED, …; unknown ones are ignored */
  topolet_str default_value; /* as it would be written in the config; empty where it is required */
  topolet_strs allowed;      /* for choices and lists; not used for other types */
  int64_t minimum;           /* for integers and floats; for durations in milliseconds, for sizes in bytes */
  int64_t maximum;           /* the same; both 0: no bounds */
  topolet_str help;          /* one sentence */
} topolet_option;

/* ---- Host -------------------------------------------------------------------------------------------------------- */

typedef struct topolet_host topolet_host;

/* The host as one instance sees it. Lives until exit. */
struct topolet_host {
  uint32_t struct_size;
  uint32_t abi_minor; /* the host's TOPOLET_ABI_MINOR */
  void* context;      /* the host's own */

  /* The host's capability of this id (such as TOPOLET_LOG_ID), or null if it has none. The answer is always the same.
   * The host owns the struct; it lives until exit. [any-thread] */
  const void* (*get_capability)(const topolet_host* host, topolet_str id);

  topolet_str name;    /* for people, such as "topoletd", "topolet simulate", "topolet plugin check" */
  topolet_str version; /* topolet's, for people, such as "1.0.3"; what a host can do is said by its capabilities */
};

/* ---- Instance ---------------------------------------------------------------------------------------------------- */

/* Where create() says why it failed. */
typedef struct topolet_error_sink topolet_error_sink;
struct topolet_error_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* context; /* the host's own */

  /* Copies the message: one line that says what is wrong and how to correct it. The last call counts; beyond 1,024
   * bytes the message is cut. Returns TOPOLET_OK, or TOPOLET_LATE when the host has abandoned the call. [control],
   * during create() only */
  int32_t (*set)(const topolet_error_sink* sink, topolet_str message);
};

/* A running instance of a plugin. Owned by the plugin from create() to destroy(). */
typedef struct topolet_instance topolet_instance;
struct topolet_instance {
  uint32_t struct_size;
  uint32_t reserved;
  void* context; /* the plugin's own */

  /* The plugin's capability of this id (such as TOPOLET_SCORE_ID), or null if it has none; unknown ids are normal. The
   * answer is always the same. The plugin owns the struct; it lives, unchanged, until destroy() has returned. Functions
   * that came after its first release may be missing or null. Called after create().
   * [control] */
  const void* (*get_capability)(const topolet_instance* instance, topolet_str id);

  /* Frees the instance and all that belongs to it, when its own threads have ended. No call into it is running and none
   * follows.
   * [control] */
  void (*destroy)(const topolet_instance* instance);
};

/* What an instance is made for. A later purpose is shown as TOPOLET_PURPOSE_CHECK. */
typedef enum topolet_purpose {
  TOPOLET_PURPOSE_RUN = 0,     /* to place containers */
  TOPOLET_PURPOSE_CHECK = 1,   /* to judge the configuration or the plugin */
  TOPOLET_PURPOSE_SIMULATE = 2 /* to place containers that do not exist */
} topolet_purpose;

/* What an instance is created from. Unless its purpose is TOPOLET_PURPOSE_RUN, an instance changes nothing outside
 * itself: no file, no device, no other process. */
typedef struct topolet_create_request {
  uint32_t struct_size;
  int32_t purpose; /* topolet_purpose */
  const topolet_host* host;
  topolet_kvs options; /* in the order of the table: one value for each option, several for a repeated one, none for a
                          repeated one that is not given; checked against its type */
  topolet_kvs configuration; /* all of it, each key "SECTION.KEY", with the defaults, without what is secret; a repeated
                                key several times, in that order */
  const topolet_topology* topology; /* the machine as it is now, to judge the options by; null where the host does not
                                       know it */
  uint32_t deadline_ms;             /* create() is given up after so long (placement.plugin-timeout); 0: never */
  uint32_t reserved;
} topolet_create_request;

/* ---- Entry ------------------------------------------------------------------------------------------------------- */

#define TOPOLET_WEIGHT_MAX 1000

/* What topolet_plugin_v1 is. Constant: the host reads it before create() and for as long as it runs. */
typedef struct topolet_plugin_entry {
  uint32_t struct_size; /* sizeof(topolet_plugin_entry) */
  uint32_t abi_minor;   /* TOPOLET_ABI_MINOR: the values that the plugin is shown are of this minor or earlier */
  uint32_t abi_draft;   /* TOPOLET_ABI_DRAFT */
  /* The factor for its scores where the configuration sets no weight, up to TOPOLET_WEIGHT_MAX; 0 means 1. */
  uint32_t default_weight;
  topolet_str id;      /* lower-case letters, digits and '-', a letter first, 64 at most; the file's name without .so.
                          ABI.md lists those that are reserved */
  topolet_str version; /* the plugin's own, for people */
  const topolet_option* options;
  uint32_t option_count;
  uint32_t option_stride;

  /* Creates an instance and stores it in *instance. On failure returns TOPOLET_FAILED, says why through `error`, leaves
   * *instance alone and keeps nothing. `request` and `error` are borrowed for the call; the instance stays the
   * plugin's. More than one instance may exist at a time. [control] */
  int32_t (*create)(const topolet_create_request* request, const topolet_error_sink* error,
                    const topolet_instance** instance);

  topolet_str vendor; /* for people, as are the next two; all three may be empty */
  topolet_str url;
  topolet_str description; /* one sentence */
} topolet_plugin_entry;

/* The one symbol a plugin exports. Defined by the plugin, never by the host. */
extern TOPOLET_EXPORT const topolet_plugin_entry topolet_plugin_v1;

/* ---- Small readers, compiled into whoever includes this ---------------------------------------------------------- */

/* 1 if `index` is in the set. */
static inline int topolet_set_has(topolet_set set, uint32_t index) {
  return index / 64u < set.count && ((set.words[index / 64u] >> (index % 64u)) & 1u) != 0u;
}

/* 1 if the string is the zero-terminated `text`. */
static inline int topolet_str_is(topolet_str string, const char* text) {
  return string.len == strlen(text) && (string.len == 0 || memcmp(string.ptr, text, string.len) == 0);
}

#ifdef __cplusplus
}
#endif

#endif
